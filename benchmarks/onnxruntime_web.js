// Runs an ONNX model in onnxruntime-web on one thread, for benchmarks/webassembly.py: more messages for host.js.
{
  let pieces = []; // of the file that the next message is about
  const file = async () => {
    const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
    pieces = [];
    return bytes;
  };
  let session, feeds, output;

  Object.assign(asked, {
    piece: ({ data }) => void pieces.push(fromBase64(data)),
    // The runtime is in a folder, or (a page has none) its code came in pieces.
    async onnxRuntime({ folder, script }) {
      if (folder) globalThis.ort = require(`${folder}/ort.wasm.min.js`);
      ort.env.wasm.numThreads = 1;
      if (folder) ort.env.wasm.wasmPaths = `${folder}/`;
      else {
        ort.env.wasm.wasmPaths = { mjs: URL.createObjectURL(new Blob([script], { type: "text/javascript" })) };
        ort.env.wasm.wasmBinary = (await file()).buffer;
      }
      return ort.env.versions.web;
    },
    async onnxModel({ shape, data }) {
      session = await ort.InferenceSession.create(await file(), { executionProviders: ["wasm"] });
      const numbers = new Float32Array(fromBase64(data).slice().buffer);
      feeds = { [session.inputNames[0]]: new ort.Tensor("float32", numbers, shape) };
    },
    async onnxRun({ runs }) {
      const begun = performance.now();
      for (let i = 0; i < runs; i++) output = await session.run(feeds);
      return (performance.now() - begun) / 1e3;
    },
    onnxOutput: () => Array.from(output[session.outputNames[0]].data),
  });
}
