// A parallel computation on every core, whose threads wait for each other in loops that never sleep, as
// OpenMP's do with OMP_WAIT_POLICY=active. Two instances have two threads for each core: while one of
// them waits in its loop, the one that it waits for has no core.
const http = require("node:http");
const os = require("node:os");
const { Worker, isMainThread, workerData } = require("node:worker_threads");

const THREADS = os.availableParallelism();
const STEPS = 20;

function compute(steps) {
  let sum = 0;
  for (let i = 0; i < steps; i++) sum += Math.sqrt(i);
  return sum;
}

if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(16));
  const workers = Array.from({ length: THREADS }, () => new Worker(__filename, { workerData: shared }));
  const waiting = [];
  let left = 0;
  const next = () => {
    if (left > 0 || waiting.length === 0) return;
    left = THREADS;
    workers.forEach((worker) => worker.postMessage("compute"));
  };
  workers.forEach((worker) =>
    worker.on("message", () => {
      left -= 1;
      if (left === 0) waiting.shift().end("computed\n");
      next();
    }),
  );
  http
    .createServer((request, response) => {
      waiting.push(response);
      next();
    })
    .listen(Number(process.env.PORT), "127.0.0.1");
} else {
  const { parentPort } = require("node:worker_threads");
  let arrived = 0;
  parentPort.on("message", () => {
    for (let step = 0; step < STEPS; step++) {
      compute(200_000);
      arrived += THREADS;
      Atomics.add(workerData, 0, 1);
      while (Atomics.load(workerData, 0) < arrived);
    }
    parentPort.postMessage("done");
  });
}
