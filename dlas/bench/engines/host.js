// Runs one WebAssembly module of DLAS: the same in Node and in a page.  The module imports nothing.
"use strict";

class Host {
  // `bytes`: the module; `contents`: what a host has to know of it, see dlas/stack/engine.py.
  static async load(bytes, contents) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Host(instance.exports, contents);
  }

  constructor(exports, contents) {
    const aligned = (size) => Math.ceil(size / 64) * 64; // ALIGNMENT in dlas/stack/engine.py
    this.exports = exports;
    this.contents = contents;
    this.parameters = aligned(exports.__heap_base.value);
    this.memory = this.parameters + contents.parameters_bytes;
    const missing = this.memory + contents.memory_bytes - exports.memory.buffer.byteLength;
    if (missing > 0) exports.memory.grow(Math.ceil(missing / 65536));
  }

  // Views are made when they are needed: memory that grows detaches earlier ones.
  bytes(start, size) {
    return new Uint8Array(this.exports.memory.buffer, start, size);
  }

  setParameters(offset, bytes) {
    this.bytes(this.parameters + offset, bytes.length).set(bytes);
  }

  write(offset, bytes) {
    this.bytes(this.memory + offset, bytes.length).set(bytes);
  }

  read(offset, size) {
    return this.bytes(this.memory + offset, size).slice();
  }

  // The seconds of so many inferences.
  run(runs) {
    const begun = performance.now();
    this.exports.run(this.parameters, this.memory, runs);
    return (performance.now() - begun) / 1e3;
  }

  // The seconds of so many times one call of an inference.
  call(which, runs) {
    const begun = performance.now();
    this.exports.call(this.parameters, this.memory, which, runs);
    return (performance.now() - begun) / 1e3;
  }
}

// The smallest step of the clock in seconds.
function clockStep() {
  let least = Infinity;
  let before = performance.now();
  for (let steps = 0; steps < 100; ) {
    const now = performance.now();
    if (now > before) {
      least = Math.min(least, now - before);
      before = now;
      steps++;
    }
  }
  return least / 1e3;
}

// Whether the engine accepts vectors, and vectors with relaxed rounding: the smallest modules with either.
function features() {
  const head = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10];
  const accepts = (body) => WebAssembly.validate(new Uint8Array([...head, ...body]));
  return {
    simd: accepts([10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]),
    relaxed_simd: accepts([15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11]),
  };
}

function fromBase64(text) {
  if (typeof Buffer !== "undefined") return new Uint8Array(Buffer.from(text, "base64"));
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

function toBase64(bytes) {
  if (typeof Buffer !== "undefined") return Buffer.from(bytes).toString("base64");
  const pieces = [];
  for (let i = 0; i < bytes.length; i += 32768) {
    pieces.push(String.fromCharCode(...bytes.subarray(i, i + 32768)));
  }
  return btoa(pieces.join(""));
}

// What dlas/bench/engines/javascript.py asks for, by name.
const asked = {
  host: null,
  features: () => features(),
  clockStep: () => clockStep(),
  async load({ code, contents }) {
    asked.host = null; // the module before may need the memory that this one gets
    asked.host = await Host.load(fromBase64(code), contents);
  },
  setParameters: ({ offset, data }) => asked.host.setParameters(offset, fromBase64(data)),
  write: ({ offset, data }) => asked.host.write(offset, fromBase64(data)),
  read: ({ offset, size }) => toBase64(asked.host.read(offset, size)),
  run: ({ runs }) => asked.host.run(runs),
  call: ({ which, runs }) => asked.host.call(which, runs),
  bytesUsed: () => asked.host.exports.memory.buffer.byteLength,
};

// Answers a message with `value` or `error`, as text.
async function answer(text) {
  const { name, ...given } = JSON.parse(text);
  try {
    return JSON.stringify({ value: (await asked[name](given)) ?? null });
  } catch (error) {
    return JSON.stringify({ error: String(error) });
  }
}
