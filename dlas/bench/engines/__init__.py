"""Engines of WebAssembly: wasmtime in this process, Node and Chromium as processes that end with it."""
