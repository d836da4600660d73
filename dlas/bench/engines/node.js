// Answers the messages of dlas/bench/engines/node.py, a line each; `answer` is host.js's.
const { createReadStream, writeSync } = require("fs");

require("readline")
  .createInterface({ input: createReadStream(null, { fd: 3 }) })
  .on("line", async (line) => {
    let left = Buffer.from((await answer(line)) + "\n");
    while (left.length) left = left.subarray(writeSync(4, left));
  })
  .on("close", () => process.exit(0));
