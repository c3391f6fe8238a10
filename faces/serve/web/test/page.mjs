// Drives every page of a real server in Chromium: sign in, submit, watch the job finish, charts,
// 100 000 trials, one candidate, compare, download, make and revoke tokens, sign out by revoking.
//
//   page.mjs --atunner BINARY [--shots FOLDER]
//
// With --shots every page is kept as a picture at three widths. Exit code 77: no Chromium, or no
// NVRTC to compile kernels with.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium, hasChromium, openBrowser } from "./browser.mjs";

const { values: options } = parseArgs({
  options: { atunner: { type: "string" }, shots: { type: "string" } },
});
const here = dirname(fileURLToPath(import.meta.url));
const kernels = join(here, "../../../../examples/kernels");
const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
if (!hasChromium()) skip(`there is no ${chromium}; apt-get install chromium`);
const home = mkdtempSync(join(tmpdir(), "atunner-page."));
const environment = {
  ...process.env,
  XDG_DATA_HOME: `${home}/data`,
  XDG_CONFIG_HOME: `${home}/config`,
};
const store = `${home}/runs.db`;
const atunner = (...words) =>
  execFileSync(options.atunner, words, { env: environment, encoding: "utf8" });
if (!atunner("doctor", "--json").includes('"part":"NVRTC","found":true'))
  skip("NVRTC is not installed");

const tokenOf = (name, scope) =>
  atunner("token", "create", "--name", name, "--scope", scope, "--store", store).trim();
const adminToken = tokenOf("owner", "admin");
tokenOf("laptop", "submit,read");
const log = openSync(`${home}/server.log`, "w");
const server = spawn(
  options.atunner,
  ["serve", "--json", "--listen", "127.0.0.1:0", "--require-tokens", "--store", store],
  { env: environment, stdio: ["ignore", "pipe", log] },
);
const [line] = await new Promise((ready) =>
  createInterface({ input: server.stdout }).once("line", (text) => ready([text])),
);
const base = JSON.parse(line).url;
const api = async (path, init = {}) => {
  const headers = { Authorization: `Bearer ${adminToken}` };
  return (await fetch(`${base}/api/v1${path}`, { headers, ...init })).json();
};
const submit = (request) => api("/jobs", { method: "POST", body: JSON.stringify(request) });

const faults = [];
const driver = await openBrowser(base, faults);
const { page, browser, contains, settled, go, press, fill } = driver;
const place = {}; // jobs and runs that earlier steps made

async function signIn() {
  await page.goto(`${base}/#/jobs`);
  await page.waitForSelector("#token");
  await fill("#token", "atn_wrong");
  await press("Sign in");
  await page.waitForSelector(".failure");
  await fill("#token", adminToken);
  await press("Sign in");
  await contains("h1", "Jobs");
}

async function submitOperator() {
  await go("submit");
  await fill("#shapes", "64,x");
  await press("Submit");
  await contains(".error", "write sizes");
  await fill("#shapes", "64,512");
  await fill("#operator", "sofmax");
  await press("Submit");
  await contains(".failure", "did you mean 'softmax'?");
  await fill("#operator", "softmax");
  await fill("#budget", "6");
  await press("Submit");
  await page.waitForSelector(".plot canvas");
  await contains(".figures .tag", "predicted");
  await contains("h1 .tag", "succeeded");
  await contains(".figures", "6 / 6");
}

async function submitKernel() {
  await go("submit");
  const boxes = await page.$$("input[type=radio]");
  await boxes[1].click();
  await (await page.waitForSelector("#file")).uploadFile(join(kernels, "transpose.cu"));
  await fill("#budget", "5");
  await press("Submit");
  await contains("h1 .tag", "succeeded");
  place.job = new URL(page.url()).hash.split("/")[2];
  place.run = (await api(`/jobs/${place.job}`)).runs[0];
}

async function downloadArtifact() {
  const folder = `${home}/downloads`;
  const session = await page.createCDPSession();
  await session.send("Browser.setDownloadBehavior", {
    behavior: "allow",
    downloadPath: folder,
    eventsEnabled: true,
  });
  const done = new Promise((ready) =>
    session.on("Browser.downloadProgress", (one) => one.state === "completed" && ready()),
  );
  await press("Download all");
  await done;
  const tar = readFileSync(`${folder}/${place.job}.tar`);
  for (const name of ["kernel.cu", "kernel.cubin", "manifest.json"])
    assert.ok(tar.includes(`${place.job}/${name}`), `${name} is in the artifact`);
}

async function lookAtRun() {
  await press("Trials and heatmap");
  await page.waitForSelector(".chart canvas");
  for (const view of ["Parallel coordinates", "Importance", "Trade-offs"]) {
    await press(view);
    await page.waitForSelector(".chart canvas");
  }
  await page.waitForFunction(() => window.location.hash.includes("view=pareto"));
  await contains(".grid .row", "correct");
  await press("time");
  await page.waitForFunction(() => window.location.hash.includes("sort=time_ns"));
  await page.waitForSelector(".rows .row[data-trial]");
  await page.focus(".rows .row[data-trial]");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await contains(".detail h2", "Trial ");
  await contains(".detail", "checks");
  await press("Time, roofline and source");
  await contains("h2", "Memory bandwidth"); // a transpose computes nothing
  await contains("h2", "Where the time goes");
  await contains("td", "oracle");
  await contains(".source", "__global__");
}

async function lookAtManyTrials() {
  place.many = execFileSync("python3", [join(here, "many_trials.py"), store, "100000"], {
    encoding: "utf8",
  }).trim();
  const begin = Date.now();
  await go(`runs/${place.many}`);
  await contains("p.hint", "100,000 trials");
  await page.waitForSelector(".rows .row[data-trial]");
  console.log(`  100 000 trials are in view after ${Date.now() - begin} ms`);
  assert.ok((await page.$$(".rows .row")).length < 60, "only rows in view are drawn");
  await page.evaluate(() => {
    const grid = document.querySelector(".grid");
    grid.scrollTop = grid.scrollHeight;
  });
  await contains(".rows .row", "100000");
  await page.select(".filters select", "wrong-result");
  await contains(".hint[role=status]", "14,285 trials");
}

async function compare() {
  await go("runs");
  const boxes = await page.$$("input[type=checkbox]");
  await boxes[0].click();
  await boxes[1].click();
  await press("Compare the two");
  await page.waitForFunction(() => window.location.hash.startsWith("#/compare?a="));
  await settled();
  place.compare = new URL(page.url()).hash.slice(2);
}

async function readHandbook() {
  await go("knowledge");
  await fill("input[type=search]", "bank conflicts");
  await contains(".pages a", "Bank conflicts");
  await go("knowledge/bank-conflicts");
  await contains(".prose strong", "Recognise.");
}

async function failures() {
  const content = "__global__ void f(float* y) { y[0] = nothing; }";
  const upload = await api("/uploads?name=wrong.cu", { method: "POST", body: content });
  const { id } = await submit({ kind: "source", upload: upload.id, target_gpu: "A100" });
  place.failed = id;
  await go(`jobs/${id}`);
  await contains("h1 .tag", "failed");
  await go("runs/nothing");
  await page.waitForSelector(".failure");
  await go("nowhere");
  await contains(".empty h1", "no such page");
}

const places = () => ({
  jobs: "jobs",
  job: `jobs/${place.job}`,
  failed: `jobs/${place.failed}`,
  runs: "runs",
  run: `runs/${place.run}?trial=1`,
  parallel: `runs/${place.run}?view=parallel`,
  importance: `runs/${place.run}?view=importance`,
  pareto: `runs/${place.run}?view=pareto`,
  candidate: `runs/${place.run}/trials/1`,
  many: `runs/${place.many}`,
  compare: place.compare,
  gpus: "devices",
  knowledge: "knowledge",
  page: "knowledge/roofline",
  admin: "admin",
  submit: "submit",
});

/** Findings of axe-core in both colour schemes, and pages that are wider than a telephone. */
async function lookAtAll() {
  for (const [name, hash] of Object.entries(places())) {
    if (["importance", "pareto", "many"].includes(name)) continue; // their parts occur elsewhere
    await go(hash);
    for (const scheme of ["light", "dark"]) {
      await driver.useScheme(scheme);
      await driver.checkAccessible(`${hash}, ${scheme}`);
    }
    await page.setViewport({ width: 390, height: 860 });
    // Charts follow the width of their card a frame later.
    await page
      .waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth, {
        timeout: 10000,
      })
      .catch(() => faults.push(`${hash} is too wide for a telephone`));
    await page.setViewport({ width: 1280, height: 900 });
  }
}

async function takePictures() {
  mkdirSync(options.shots, { recursive: true });
  for (const [name, hash] of Object.entries(places()))
    for (const width of [1280, 768, 390]) {
      await page.setViewport({ width, height: 860 });
      await go(hash);
      for (const scheme of ["light", "dark"]) {
        await driver.useScheme(scheme);
        await new Promise((done) => setTimeout(done, 300));
        const path = `${options.shots}/${name}-${width}-${scheme}.png`;
        await page.screenshot({ path, fullPage: true });
      }
    }
}

async function revokeTokens() {
  await go("admin");
  await fill("#token-name", "short-lived");
  await press("Make a token");
  const secret = await page
    .waitForSelector(".secret")
    .then((one) => one.evaluate((e) => e.textContent));
  const asks = async () =>
    (await fetch(`${base}/api/v1/jobs`, { headers: { Authorization: `Bearer ${secret}` } })).status;
  assert.equal(await asks(), 200);
  await press("Revoke short-lived");
  await press("Really revoke short-lived");
  await page.waitForFunction(
    () => ![...document.querySelectorAll("td")].some((one) => one.textContent.startsWith("short-lived")),
  );
  assert.equal(await asks(), 401);
  await contains("td code", "/api/v1/tokens/");
  await press("Revoke owner");
  await press("Really revoke owner");
  await page.reload();
  await page.waitForSelector("#token");
}

const step = async (name, test) => {
  const begin = Date.now();
  try {
    await test();
    console.log(`${name}: ${Date.now() - begin} ms`);
  } catch (error) {
    faults.push(
      `${name}: ${error.message}\n${await page.evaluate(() => document.body.innerText.slice(0, 1500))}`,
    );
  }
};
await step("sign in", signIn);
await step("submit an operator, watch it finish", submitOperator);
await step("submit a kernel", submitKernel);
await step("download the artifact", downloadArtifact);
await step("run, charts, candidate", lookAtRun);
await step("100 000 trials", lookAtManyTrials);
await step("compare", compare);
await step("handbook", readHandbook);
await step("failures", failures);
await step("accessible, narrow", lookAtAll);
if (options.shots) await step("pictures", takePictures);
await step("revoke tokens", revokeTokens);
await browser.close();
const ended = new Promise((done) => server.once("exit", done));
server.kill("SIGTERM");
await ended;
if (faults.length > 0) console.error(readFileSync(`${home}/server.log`, "utf8").slice(-3000));
rmSync(home, { recursive: true, force: true });
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
