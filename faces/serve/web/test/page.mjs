// Drives the page in Chromium: submit, watch it finish, heatmap, table, one trial, compare. Without
// --server the API is the recorded one. With --shots FOLDER every page is kept as a picture at three
// widths. Exit code 77: no Chromium.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import puppeteer from "puppeteer-core";
import { makeServer } from "./recorded_server.mjs";

const { values: options } = parseArgs({
  options: {
    server: { type: "string" },
    shots: { type: "string" },
    chromium: { type: "string", default: process.env.CHROMIUM ?? "/usr/bin/chromium" },
  },
});
if (!existsSync(options.chromium)) {
  console.log(`no ${options.chromium}`);
  process.exit(77);
}

const recordedRun = "20261127-2201-softmax-552a";
const faults = [];
let server = null;
let base = options.server;
if (!base) {
  server = makeServer({ pace: 25 });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  base = `http://127.0.0.1:${server.address().port}`;
}
const browser = await puppeteer.launch({
  executablePath: options.chromium,
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
  ],
});
const page = await browser.newPage();
page.setDefaultTimeout(options.server ? 120000 : 30000);
page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
page.on("console", (message) => {
  if (message.type() === "error" && !message.text().includes("status of 4"))
    faults.push(`console: ${message.text()}`);
});
await page.setViewport({ width: 1280, height: 900 });

async function go(hash) {
  await page.goto(`${base}/#/${hash}`);
  await page.waitForSelector("h1");
}
const contains = (selector, text) =>
  page.waitForFunction(
    (s, t) => [...document.querySelectorAll(s)].some((one) => one.textContent.includes(t)),
    {},
    selector,
    text,
  );
async function press(text) {
  const buttons = await page.$$("main button, main a");
  for (const button of buttons) {
    if ((await button.evaluate((one) => one.textContent.trim())) === text) return button.click();
  }
  throw new Error(`no button '${text}'`);
}
async function fill(selector, text) {
  await page.click(selector, { count: 3 });
  await page.keyboard.press("Backspace");
  await page.type(selector, text);
}

async function testSubmit() {
  await go("submit");
  await fill("#shapes", "64,x");
  await press("Submit");
  await contains(".error", "write sizes");
  await fill("#shapes", "64,512");
  await fill("#operator", "sofmax");
  await press("Submit");
  await contains(".failure", "did you mean 'softmax'?");
  await fill("#operator", "softmax");
  await fill("#budget", "12");
  await press("Submit");
  await page.waitForSelector(".plot canvas");
  await contains(".figures .tag", "predicted");
  await contains("h1 .tag", "succeeded");
  await contains(".figures", "12 / 12");
}

async function testRun() {
  await press("Trials and heatmap");
  await page.waitForSelector(".chart canvas");
  await contains(".grid .row", "correct");
  await press("time");
  await page.waitForFunction(() => window.location.hash.includes("sort=time_ns"));
  await page.waitForSelector(".rows .row[data-trial]");
  await page.click(".rows .row[data-trial]");
  await contains(".detail h2", "Trial ");
  await contains(".detail", "checks");
}

async function testManyRows() {
  await go("runs/20261127-2230-softmax-1e05");
  await contains("p.hint", "100,000 trials");
  assert.ok((await page.$$(".rows .row")).length < 60, "only rows in view are drawn");
  await page.evaluate(() => {
    const grid = document.querySelector(".grid");
    grid.scrollTop = grid.scrollHeight;
  });
  await contains(".rows .row", "100000");
  await page.select(".filters select", "wrong-result");
  await contains(".rows .row", "wrong-result");
  await page.waitForFunction(
    () => !document.querySelector(".hint[role=status]").textContent.includes("100,000"),
  );
}

async function testCompare() {
  await go("runs");
  const boxes = await page
    .waitForSelector("input[type=checkbox]")
    .then(() => page.$$("input[type=checkbox]"));
  await boxes[0].click();
  await boxes[1].click();
  await press("Compare the two");
  await contains("h2", "times as fast as A");
}

async function testDarkAndMissing() {
  await go("devices");
  await contains("td", "A100");
  await page.click("header .plain");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.goto(`${base}/#/runs/nothing`);
  await page.waitForSelector(".failure");
}

async function settled() {
  await page.waitForSelector("h1");
  await page.waitForFunction(() => !document.querySelector(".spinner, .waiting"));
  await new Promise((done) => setTimeout(done, 300));
}

/** Serious findings of axe-core on each page, in both colour schemes. */
async function testAccessible() {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const hashes = [
    "jobs",
    "runs",
    "submit",
    "devices",
    "compare",
    ...(options.server ? [] : [`runs/${recordedRun}?trial=7`]),
  ];
  for (const scheme of ["light", "dark"]) {
    await page.evaluate((one) => localStorage.setItem("theme", one), scheme);
    for (const hash of hashes) {
      await page.goto("about:blank");
      await page.goto(`${base}/#/${hash}`);
      await settled();
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run());
      assert.ok(found.passes.length > 5, `axe looked at ${hash}`);
      for (const one of found.violations.filter((v) => ["serious", "critical"].includes(v.impact)))
        faults.push(
          `axe, ${hash}, ${scheme}: ${one.id}: ${one.nodes
            .map((n) => n.html.slice(0, 120))
            .slice(0, 3)
            .join(" | ")}`,
        );
    }
  }
}

/** A picture of a job that is running. */
async function shotOfJob(folder, width, scheme) {
  const body = JSON.stringify({
    kind: "operator",
    operator: "softmax",
    shapes: [[8192, 4096]],
    target_gpu: "A100",
    budget: { trials: 400 },
  });
  const answer = await fetch(`${base}/api/v1/jobs`, { method: "POST", body });
  const { id } = await answer.json();
  await page.goto("about:blank");
  await page.goto(`${base}/#/jobs/${id}`);
  await page.waitForFunction(() => /(4|5)\d \/ 400/.test(document.body.innerText));
  await page.screenshot({ path: `${folder}/job-${width}-${scheme}.png` });
  await fetch(`${base}/api/v1/jobs/${id}`, { method: "DELETE" });
}

async function shots(folder) {
  mkdirSync(folder, { recursive: true });
  const run = recordedRun;
  const places = {
    jobs: "jobs",
    submit: "submit",
    runs: "runs",
    run: `runs/${run}?trial=7`,
    devices: "devices",
    failed: "jobs/j-20261127-225512-3f2a9c02",
    compare: `compare?a=${run}&b=20261127-2204-softmax-77b0`,
  };
  for (const scheme of ["light", "dark"]) {
    await page.evaluate((one) => localStorage.setItem("theme", one), scheme);
    for (const width of [1280, 768, 390]) {
      await page.setViewport({ width, height: 860 });
      if (!options.server) await shotOfJob(folder, width, scheme);
      for (const [name, hash] of Object.entries(places)) {
        if (scheme === "dark" && width !== 1280) continue;
        await page.goto("about:blank");
        await page.goto(`${base}/#/${hash}`);
        await settled();
        const wide = await page.evaluate(
          () => document.documentElement.scrollWidth - window.innerWidth,
        );
        if (wide > 0) faults.push(`${name} at ${width} is ${wide} pixels too wide`);
        const fullPage = name !== "run" || width < 1280;
        await page.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png`, fullPage });
      }
    }
  }
}

const goOn = async (name, test) => {
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
await goOn("submit and watch", testSubmit);
await goOn("run, heatmap, trial", testRun);
if (!options.server) await goOn("100000 trials", testManyRows);
if (!options.server) await goOn("compare", testCompare);
await goOn("dark colours, unknown run", testDarkAndMissing);
await goOn("accessible", testAccessible);
if (options.shots) await shots(options.shots);
await browser.close();
server?.closeAllConnections();
server?.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
