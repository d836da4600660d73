// Runs an ONNX model in onnxruntime-web on one thread, for benchmarks/webassembly.py: a line of JSON a message.
const { createReadStream, readFileSync, writeSync } = require("fs");
const folder = process.argv[2];
const ort = require(`${folder}/ort.wasm.min.js`);
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = `${folder}/`;

let session, feeds, output;
const asked = {
  async load({ model, shape, data }) {
    session = await ort.InferenceSession.create(readFileSync(model), { executionProviders: ["wasm"] });
    const bytes = Buffer.from(data, "base64");
    const numbers = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    feeds = { [session.inputNames[0]]: new ort.Tensor("float32", numbers, shape) };
  },
  async run({ runs }) {
    const begun = performance.now();
    for (let i = 0; i < runs; i++) output = await session.run(feeds);
    return (performance.now() - begun) / 1e3;
  },
  output: () => Array.from(output[session.outputNames[0]].data),
  version: () => ort.env.versions.web,
};

require("readline")
  .createInterface({ input: createReadStream(null, { fd: 3 }) })
  .on("line", async (line) => {
    const { name, ...given } = JSON.parse(line);
    let told;
    try {
      told = { value: (await asked[name](given)) ?? null };
    } catch (error) {
      told = { error: String(error) };
    }
    let left = Buffer.from(JSON.stringify(told) + "\n");
    while (left.length) left = left.subarray(writeSync(4, left));
  })
  .on("close", () => process.exit(0));
