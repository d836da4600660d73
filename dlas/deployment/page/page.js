// What a deployed page does.  `host.js` runs modules; `PAGE` holds what the page is of.
const $ = (id) => document.getElementById(id);
const MOST_BYTES = 64 * 2 ** 20;
const MOST_PIXELS = 100e6;
const LONGEST_S = 1;

const ESCAPE = 0xe000;
const FLIPPED = 0x8000;

// Two bytes a character.  Those that text cannot hold follow an escape, their highest bit flipped.
function bytesOf(text) {
  const bytes = new Uint8Array(2 * text.length);
  let size = 0;
  for (let i = 1; i < text.length; i++) {
    let unit = text.charCodeAt(i);
    if (unit === ESCAPE) unit = text.charCodeAt(++i) ^ FLIPPED;
    bytes[size++] = unit & 255;
    bytes[size++] = unit >> 8;
  }
  return bytes.subarray(0, size - Number(text[0]));
}

// The bytes of an embedded file, which is packed by zlib's deflate.
async function embedded(id) {
  const stream = new Blob([bytesOf($(id).textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Numbers whose first bytes are stored before all second bytes, and so on.
function unshuffled(bytes, size) {
  const count = bytes.length / size;
  const result = new Uint8Array(bytes.length);
  for (let place = 0; place < size; place++) {
    for (let i = 0; i < count; i++) result[i * size + place] = bytes[place * count + i];
  }
  return result;
}

function widened(bytes) {
  const halves = new Uint16Array(bytes.buffer);
  const result = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) {
    const exponent = (halves[i] >> 10) & 31;
    const fraction = halves[i] & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : (2 ** -14 * fraction) / 1024;
    result[i] = halves[i] >> 15 ? -size : size;
  }
  return new Uint8Array(result.buffer);
}

// The parameters of a program, one array after the other, each stored as `stored` says.
function setParameters(host, program, bytes) {
  let at = 0;
  for (const { offset, size, width, half } of program.stored) {
    const piece = unshuffled(bytes.subarray(at, at + size), width);
    host.setParameters(offset, half ? widened(piece) : piece);
    at += size;
  }
}

const hosts = new Map();

async function hostOf(number) {
  if (!hosts.has(number)) {
    const program = PAGE.programs[number];
    const host = await Host.load(await embedded(`code${program.code}`), program.contents);
    setParameters(host, program, await embedded(`weights${program.weights}`));
    hosts.set(number, host);
  }
  return hosts.get(number);
}

let chosen = 0; // the program in use
let input = null; // the picture as the network takes it

async function outputs(number, numbers) {
  const host = await hostOf(number);
  const { inputs, output } = PAGE.programs[number].contents;
  const given = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  host.write(inputs[0].offset, given);
  host.run(1);
  const size = output.shape.reduce((a, b) => a * b, 4);
  return new Float32Array(host.read(output.offset, size).buffer).slice(0, PAGE.labels.length);
}

function probabilities(scores) {
  const most = Math.max(...scores);
  const powers = Array.from(scores, (score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

async function classify() {
  const likely = probabilities(await outputs(chosen, input));
  const order = likely.map((_, i) => i).sort((a, b) => likely[b] - likely[a]);
  $("classes").replaceChildren(
    ...order.slice(0, 5).map((which) => {
      const row = element("tr", "");
      const percent = (100 * likely[which]).toFixed(1) + " %";
      const bar = element("meter", percent, { min: 0, max: 1, value: likely[which] });
      bar.setAttribute("aria-label", `${PAGE.labels[which]} ${percent}`);
      const cell = element("td", "");
      cell.append(bar);
      row.append(element("th", PAGE.labels[which], { scope: "row" }), cell, element("td", percent));
      return row;
    }),
  );
}

const history = [];

// Times inferences until they have settled: a browser compiles a module twice.
async function time() {
  const host = await hostOf(chosen);
  const samples = [];
  let runs = 1;
  for (let spent = 0; spent < LONGEST_S || samples.length < 5; ) {
    const seconds = host.run(runs);
    spent += seconds;
    if (seconds < 0.02) runs *= 2;
    else samples.push(seconds / runs);
    if (samples.length % 10 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
  const later = samples.slice(samples.length >> 1).sort((a, b) => a - b);
  const median = later[later.length >> 1];
  history.push(median);
  $("latency").textContent = `${(1e3 * median).toPrecision(3)} ms`;
  drawHistory();
}

// The last medians as a line, from zero.
function drawHistory() {
  const shown = history.slice(-40);
  const most = Math.max(...shown);
  const points = shown.map((seconds, i) => `${4 * i + 2},${28 - (24 * seconds) / most}`);
  $("history").firstElementChild.setAttribute("points", points.join(" "));
  const range = `${(1e3 * Math.min(...shown)).toPrecision(3)} to ${(1e3 * most).toPrecision(3)} ms`;
  $("history").setAttribute("aria-label", `${shown.length} timings, ${range}`);
  $("timings").textContent = shown.length > 1 ? `${shown.length} timings: ${range}` : "";
}

function say(text) {
  $("told").textContent = text;
}

// The middle of a picture, as large as the network takes it: its pixels as RGBA.
function cut(bitmap) {
  const { height, width, border } = PAGE.picture;
  const canvas = $("picture");
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  const side = Math.min(bitmap.width, bitmap.height);
  const [left, top] = [(bitmap.width - side) / 2, (bitmap.height - side) / 2];
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, left, top, side, side, border, border, width - 2 * border, height - 2 * border);
  return context.getImageData(0, 0, width, height).data;
}

// Levels from 0 to 1 by channel, grey ones repeated; a dark background where the network knows no other.
function levels(pixels) {
  const { channels, height, width, border, grey } = PAGE.picture;
  const size = height * width;
  const result = new Float32Array(channels * size);
  const weights = [0.299, 0.587, 0.114];
  for (let i = 0; i < size; i++) {
    const colours = [0, 1, 2].map((c) => pixels[4 * i + c] / 255);
    const mean = colours.reduce((sum, level, c) => sum + weights[c] * level, 0);
    for (let c = 0; c < channels; c++) result[c * size + i] = grey || channels === 1 ? mean : colours[c];
  }
  let inverted = false;
  if (grey) {
    const inside = (i) => {
      const [y, x] = [Math.floor(i / width), i % width];
      return y >= border && x >= border && y < height - border && x < width - border;
    };
    const edge = [];
    for (let x = border; x < width - border; x++) {
      edge.push(result[border * width + x], result[(height - border - 1) * width + x]);
    }
    inverted = edge.reduce((a, b) => a + b, 0) / edge.length > 0.5;
    for (let i = 0; i < result.length; i++) {
      if (!inside(i % size)) result[i] = 0;
      else if (inverted) result[i] = 1 - result[i];
    }
  }
  return { result, inverted };
}

async function take(file) {
  if (!file) return;
  say("");
  if (file.size > MOST_BYTES) {
    say(`${file.name} has ${Math.round(file.size / 1e6)} MB: take a picture of at most 64 MB.`);
    return;
  }
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    say(`${file.name || "This"} is no picture that this browser can read: take a JPEG, PNG or WebP file.`);
    return;
  }
  if (bitmap.width * bitmap.height > MOST_PIXELS) {
    say(`${file.name} has ${bitmap.width} x ${bitmap.height} pixels: take a smaller picture.`);
    return;
  }
  const { channels, height, width, mean, deviation } = PAGE.picture;
  const pixels = cut(bitmap);
  const { result, inverted } = levels(pixels);
  for (let c = 0; c < channels; c++) {
    for (let i = 0; i < height * width; i++) {
      const at = c * height * width + i;
      result[at] = (result[at] - mean[c]) / deviation[c];
    }
  }
  input = result;
  const notes = ["The middle of the picture is used; transparent parts count as white."];
  if (inverted) notes.push("It is inverted: the network knows light things on black.");
  say(notes.join(" "));
  await classify();
}

// The example as the network takes it, drawn as a picture.
function drawExample(numbers) {
  const { channels, height, width, mean, deviation } = PAGE.picture;
  const image = new ImageData(width, height);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) {
      const from = Math.min(c, channels - 1);
      image.data[4 * i + c] = 255 * (numbers[from * height * width + i] * deviation[from] + mean[from]);
    }
    image.data[4 * i + 3] = 255;
  }
  $("picture").getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
}

// Compares every program with what its network computes for the example.
async function check(example) {
  for (let number = 0; number < PAGE.programs.length; number++) {
    const { expected, tolerance, title } = PAGE.programs[number];
    const right = new Float32Array((await embedded(`expected${expected}`)).buffer);
    const found = await outputs(number, example);
    const most = right.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
    const error = found.reduce((a, b, i) => Math.max(a, Math.abs(b - right[i])), 0) / most;
    if (!(error <= tolerance)) {
      throw new Error(`${title} differs on its example by ${error.toExponential(1)} of the largest output`);
    }
    PAGE.programs[number].error = error;
    if (PAGE.programs.length > 4) hosts.delete(number); // a slider of many paths would hold them all
  }
}

function tellProgram() {
  const { title, error, facts } = PAGE.programs[chosen];
  $("state").textContent = `Ready. On its example it differs from the network by ${error.toExponential(1)} of the largest output.`;
  if ($("path")) $("pathName").textContent = title;
  $("facts").replaceChildren(
    ...facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]),
  );
}

async function begin() {
  if (!features().simd) throw new Error("this browser runs no WebAssembly with vectors (SIMD): take a newer one");
  const example = new Float32Array((await embedded("example")).buffer);
  await check(example);
  input = example;
  drawExample(example);
  tellProgram();
  await classify();
  await time();
  $("again").onclick = time;
  $("file").onchange = (event) => take(event.target.files[0]);
  const drop = $("drop");
  document.ondragover = (event) => {
    event.preventDefault();
    drop.classList.add("over");
  };
  document.ondragleave = () => drop.classList.remove("over");
  document.ondrop = (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  };
  if ($("path")) {
    $("path").oninput = async (event) => {
      chosen = Number(event.target.value);
      tellProgram();
      await classify();
    };
    $("path").onchange = time;
  }
  document.documentElement.dataset.state = "ready";
}

begin().catch((error) => {
  $("state").textContent = `It does not run here: ${error.message || error}`;
  document.documentElement.dataset.state = "failed";
});
