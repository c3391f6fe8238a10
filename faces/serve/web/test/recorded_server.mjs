// The API of faces/serve/openapi.yaml with recorded answers, for the page alone: no kernel is
// compiled. A job that is submitted goes through its trials within a second. The Content-Security-
// Policy is that of `atunner serve`.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "../dist");
const types = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
export const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const parameters = [
  {
    name: "threads_per_row",
    values: [8, 16, 32, 64, 128, 256],
    meaning: "threads that share one row",
  },
  { name: "rows_per_block", values: [1, 2, 4, 8, 16] },
  { name: "vector", values: [1, 2, 4] },
  { name: "unroll", values: [1, 2, 4, 8] },
  { name: "keep", values: [true, false] },
];
const verdicts = [
  "correct",
  "correct",
  "correct",
  "correct",
  "correct",
  "correct",
  "wrong-result",
  "compile-error",
];

/** Numbers between 0 and 1 that are the same each time. */
function noise(seed) {
  const x = Math.sin(seed * 12.9898) * 43758.5453;
  return x - Math.floor(x);
}

export function trialsOf(count, scale = 1) {
  return Array.from({ length: count }, (_, i) => {
    const pick = (values, salt) => values[Math.floor(noise(i * 7 + salt) * values.length)];
    const configuration = Object.fromEntries(
      parameters.map((one, at) => [one.name, pick(one.values, at + 1)]),
    );
    const verdict = i === 0 ? "correct" : pick(verdicts, 9);
    const shape =
      1 +
      Math.abs(Math.log2(configuration.threads_per_row / 32)) * 0.6 +
      Math.abs(Math.log2(configuration.rows_per_block / 4)) * 0.35 +
      (4 - configuration.vector) * 0.1;
    const time_ns =
      verdict === "correct" ? scale * 3200 * shape * (1 + 0.1 * noise(i + 0.5)) : null;
    return {
      number: i + 1,
      candidate: String(i),
      kind: "configuration",
      proposer: i === 0 ? "default" : "search:auto",
      verdict,
      reason: verdict === "wrong-result" ? "oracle (normal inputs): 'y' is wrong" : "",
      time_ns,
      configuration,
      registers: 24 + (i % 40),
      compile_seconds: 2,
      judge_seconds: 0.3,
      note: "",
    };
  });
}

const text = (configuration) =>
  Object.entries(configuration)
    .map(([k, v]) => `${k}=${v}`)
    .join(", ");
const bestOf = (trials) =>
  trials.filter((one) => one.time_ns).sort((a, b) => a.time_ns - b.time_ns)[0];

function runOf(id, trials, device) {
  const best = bestOf(trials);
  return {
    trials,
    run: {
      id,
      created: new Date(Date.now() - 3.6e6).toISOString(),
      status: "finished",
      evidence: "predicted",
      device,
      command: `atunner optimize --operator softmax --input-shape 8192,4096 --target-gpu ${device.includes("H200") ? "H200" : "A100"}`,
      task: "softmax",
      trials: trials.length,
      best_ns: best.time_ns,
      seconds: 241,
      space: { parameters },
      spec: { name: "softmax" },
      summary: {
        floor_ns: best.time_ns * 0.71,
        space_size: 720,
        stop_reason: "the budget is used up",
        best_configuration: best.configuration,
        baselines: [{ name: "naive", estimate: { time_ns: best.time_ns * 1.9 } }],
      },
    },
  };
}

export function makeServer({ many = 100000, pace = 40 } = {}) {
  const runs = new Map(
    [
      runOf("20261127-2201-softmax-552a", trialsOf(60), "NVIDIA A100-SXM4-80GB"),
      runOf("20261127-2204-softmax-77b0", trialsOf(60, 0.6), "NVIDIA H200"),
      runOf("20261127-2230-softmax-1e05", trialsOf(many, 0.9), "NVIDIA A100-SXM4-80GB"),
    ].map((one) => [one.run.id, one]),
  );
  const jobs = new Map();
  const finished = [
    ["softmax", "succeeded", 1.32],
    ["rms_norm", "succeeded", 2.41],
    ["matmul", "failed", null],
    ["gelu", "cancelled", 1.08],
  ];
  for (const [name, state, speedup] of finished)
    addJob(
      {
        kind: "operator",
        operator: name,
        shapes: [[64, 512]],
        target_gpu: "A100",
        budget: { trials: 20 },
      },
      state,
      speedup,
    );

  function addJob(request, state = "queued", speedup = null) {
    const id = `j-20261127-22551${jobs.size}-3f2a9c0${jobs.size}`;
    const best = speedup
      ? {
          run: "20261127-2201-softmax-552a",
          trial: 7,
          configuration: "threads_per_row=32, rows_per_block=4, vector=4",
          time_ns: 4854.9 / speedup,
        }
      : null;
    const job = {
      id,
      name: request.operator ?? "kernel",
      state,
      cancel_requested: false,
      request,
      priority: 0,
      labels: {},
      created: new Date(Date.now() - 6e5 * (jobs.size + 1)).toISOString(),
      started: null,
      ended: null,
      attempts: 1,
      failures: 0,
      max_attempts: 3,
      losses: 0,
      max_losses: 10,
      worker: state === "queued" ? null : "local-1",
      device: "NVIDIA A100-SXM4-80GB",
      evidence: "predicted",
      best,
      baseline: best ? { name: "naive", time_ns: 4854.9 } : null,
      speedup,
      budget: {
        trials: request.budget?.trials ?? 60,
        seconds: null,
        used_trials: state === "queued" ? 0 : 20,
        used_seconds: state === "queued" ? 0 : 41,
      },
      runs: best ? [best.run] : [],
      artifact: best ? { files: 4, bytes: 70000 } : null,
      error:
        state === "failed"
          ? {
              code: "invalid-input",
              detail: "matmul takes M,N,K: the shape [64, 512] has two sizes",
              hint: "64,64,64",
            }
          : null,
      links: {},
    };
    jobs.set(id, { job, events: [], listeners: new Set() });
    return jobs.get(id);
  }

  function emit(entry, event, data) {
    const one = `id: ${entry.events.length + 1}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    entry.events.push(one);
    for (const response of entry.listeners) response.write(one);
  }

  function work(entry) {
    const { job } = entry;
    const all = trialsOf(job.budget.trials);
    const run = `20261127-2255-${job.name}-${jobs.size}`;
    job.state = "running";
    Object.assign(job, { evidence: null, device: null });
    job.worker = "local-1";
    job.runs = [];
    emit(entry, "state", job);
    emit(entry, "run_started", { evidence: "predicted", device: "NVIDIA A100-SXM4-80GB", run });
    emit(entry, "baseline", { baseline: { name: "naive", estimate: { time_ns: 6490 } } });
    let best = null;
    const step = (i) => {
      if (i === all.length || job.cancel_requested) {
        runs.set(run, { ...runOf(run, all.slice(0, i), "NVIDIA A100-SXM4-80GB") });
        runs.get(run).run.task = job.name;
        Object.assign(job, {
          state: job.cancel_requested ? "cancelled" : "succeeded",
          evidence: "predicted",
          device: "NVIDIA A100-SXM4-80GB",
          baseline: { name: "naive", time_ns: best.time_ns * 1.9 },
          runs: [run],
          speedup: 1.9,
          artifact: { files: 4, bytes: 70000 },
        });
        emit(entry, "end", job);
        for (const response of entry.listeners) response.end();
        return;
      }
      const trial = all[i];
      if (trial.time_ns && (!best || trial.time_ns < best.time_ns)) best = trial;
      Object.assign(job.budget, { used_trials: i + 1, used_seconds: (i + 1) * 0.7 });
      job.best = {
        run,
        trial: best.number,
        configuration: text(best.configuration),
        time_ns: best.time_ns,
      };
      emit(entry, "trial", {
        event: "trial",
        run,
        number: trial.number,
        configuration: text(trial.configuration),
        verdict: trial.verdict,
        reason: trial.reason,
        time_ns: trial.time_ns,
        best_ns: best.time_ns,
        trials_done: i + 1,
        seconds: (i + 1) * 0.7,
      });
      setTimeout(() => step(i + 1), pace);
    };
    setTimeout(() => step(0), pace);
  }

  function trialPage(trials, query) {
    const sort = query.get("sort") ?? "number";
    const key = sort.replace(/^-/, "");
    const value = (one) => (key.startsWith("p.") ? one.configuration[key.slice(2)] : one[key]);
    let found = trials;
    for (const [name, wanted] of query) {
      if (name === "verdict") found = found.filter((one) => one.verdict === wanted);
      if (name.startsWith("p."))
        found = found.filter((one) => String(one.configuration[name.slice(2)]) === wanted);
    }
    const sign = sort.startsWith("-") ? -1 : 1;
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return x < y ? -sign : x > y ? sign : 0;
    };
    if (key !== "number" || sign < 0) found = [...found].sort(order);
    const offset = Number(query.get("offset") ?? 0);
    return {
      trials: found.slice(offset, offset + Number(query.get("limit") ?? 100)),
      total: found.length,
    };
  }

  const known = [
    ["A100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 1.41, 80, 2039],
    ["H100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 1.98, 80, 3352],
    ["H200", "NVIDIA H200", 9, 0, 132, 1.98, 141, 4800],
  ].map(([name, full_name, cc_major, cc_minor, sms, clock_ghz, gib, dram_gbps]) => ({
    name,
    full_name,
    cc_major,
    cc_minor,
    sms,
    clock_ghz,
    dram_bytes: gib * 2 ** 30,
    dram_gbps,
  }));

  const answers = [
    [
      /^\/status$/,
      () => ({
        version: "0.1.0",
        auth_required: false,
        scopes: ["read", "submit", "work", "admin"],
        workers: 1,
        jobs: [...jobs.values()].reduce(
          (sum, { job }) => ({ ...sum, [job.state]: (sum[job.state] ?? 0) + 1 }),
          {},
        ),
      }),
    ],
    [/^\/devices$/, () => ({ present: [], known, why_none: "libcuda.so.1 is not installed" })],
    [
      /^\/workers$/,
      () => ({
        workers: [{ name: "local-1", gpus: [], labels: {}, job: null, last_seen_seconds: 1.2 }],
      }),
    ],
    [
      /^\/operators$/,
      () => ({
        operators: [
          { name: "matmul", summary: "C = A B" },
          { name: "rms_norm", summary: "x / rms(x)" },
          { name: "softmax", summary: "softmax over the last axis" },
        ],
      }),
    ],
    [
      /^\/jobs$/,
      (_, query) => {
        const wanted = query.get("state")?.split(",");
        const found = [...jobs.values()]
          .map((one) => one.job)
          .filter((one) => !wanted || wanted.includes(one.state))
          .reverse();
        return { jobs: found, total: found.length };
      },
    ],
    [/^\/jobs\/([^/]+)$/, ([id]) => jobs.get(id)?.job],
    [
      /^\/jobs\/([^/]+)\/artifacts$/,
      () => ({
        files: ["kernel.cu", "kernel.ptx", "manifest.json", "report.html"].map((path, i) => ({
          path,
          bytes: 9000 * (i + 1),
          link: "",
        })),
      }),
    ],
    [
      /^\/runs$/,
      (_, query) => {
        const q = query.get("q") ?? "";
        const found = [...runs.values()]
          .map((one) => one.run)
          .filter((one) => (one.id + one.command + one.device).includes(q))
          .reverse();
        return { runs: found, total: found.length };
      },
    ],
    [/^\/runs\/([^/]+)$/, ([id]) => runs.get(id)?.run],
    [
      /^\/runs\/([^/]+)\/trials$/,
      ([id], query) => runs.has(id) && trialPage(runs.get(id).trials, query),
    ],
    [
      /^\/runs\/([^/]+)\/trials\/(\d+)$/,
      ([id, number]) => {
        const trial = runs.get(id)?.trials[Number(number) - 1];
        return (
          trial && {
            number: trial.number,
            configuration: Object.values(trial.configuration),
            verdict: {
              kind: trial.verdict,
              reason: trial.reason,
              checks: ["normal", "uniform", "heavy tail"].map((family, i) => ({
                check: "oracle",
                family,
                dims: { rows: 64, cols: 512 },
                passed: trial.verdict === "correct" || i > 0,
                error: 1.2e-7,
                bound: 6.5e-7,
                detail: "",
              })),
            },
            estimate: trial.time_ns ? { time_ns: trial.time_ns, limiter: "DRAM bandwidth" } : null,
            resources: [
              {
                entry: "softmax_rows",
                registers: trial.registers,
                static_shared_bytes: 2048,
                spill_store_bytes: 0,
              },
            ],
            note: "",
          }
        );
      },
    ],
  ];

  function sendJson(response, status, body, type = "application/json") {
    response.writeHead(status, { "Content-Type": type });
    response.end(JSON.stringify(body));
  }

  function api(request, response, path, query) {
    const events = /^\/jobs\/([^/]+)\/events$/.exec(path);
    if (events || path === "/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const entry = events && jobs.get(events[1]);
      for (const one of entry?.events ?? [": none\n\n"]) response.write(one);
      if (entry && !["queued", "running"].includes(entry.job.state)) {
        response.end(`event: end\ndata: ${JSON.stringify(entry.job)}\n\n`);
        return;
      }
      entry?.listeners.add(response);
      request.on("close", () => entry?.listeners.delete(response));
      return;
    }
    if (request.method === "POST" && path === "/jobs") {
      let body = "";
      request.on("data", (part) => {
        body += part;
      });
      request.on("end", () => {
        const wanted = JSON.parse(body);
        if (wanted.operator === "sofmax")
          return sendJson(
            response,
            422,
            {
              title: "Unprocessable Content",
              status: 422,
              detail: "unknown operator 'sofmax'",
              errors: [
                {
                  field: "operator",
                  detail: "unknown operator 'sofmax'",
                  hint: "did you mean 'softmax'?",
                },
              ],
            },
            "application/problem+json",
          );
        const entry = addJob(wanted);
        entry.job.created = new Date().toISOString();
        sendJson(response, 202, entry.job);
        return work(entry);
      });
      return;
    }
    if (request.method === "DELETE" && jobs.has(path.slice(6))) {
      const { job } = jobs.get(path.slice(6));
      job.cancel_requested = true;
      return sendJson(response, 202, job);
    }
    for (const [pattern, answer] of answers) {
      const found = pattern.exec(path);
      const body = found && answer(found.slice(1).map(decodeURIComponent), query);
      if (body) return sendJson(response, 200, body);
    }
    sendJson(
      response,
      404,
      { title: "Not Found", status: 404, detail: `there is no ${path}` },
      "application/problem+json",
    );
  }

  return createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname.startsWith("/api/v1"))
      return api(request, response, url.pathname.slice(7), url.searchParams);
    const file = normalize(url.pathname === "/" ? "/index.html" : url.pathname);
    try {
      const bytes = readFileSync(join(dist, file));
      response.writeHead(200, {
        "Content-Type": types[extname(file)] ?? "application/octet-stream",
        "Content-Security-Policy": policy,
      });
      response.end(bytes);
    } catch {
      sendJson(response, 404, {});
    }
  });
}
