// Chromium, and what tests of pages do with it.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

export const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const hasChromium = () => existsSync(chromium);

/** A page of the server at `base`. What goes wrong in it is added to `faults`. */
export async function openBrowser(base, faults) {
  const browser = await puppeteer.launch({
    executablePath: chromium,
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
  page.setDefaultTimeout(60000);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("status of 4"))
      faults.push(`console: ${message.text()}`);
  });
  await page.setViewport({ width: 1280, height: 900 });

  const contains = (selector, text) =>
    page.waitForFunction(
      (s, t) => [...document.querySelectorAll(s)].some((one) => one.textContent.includes(t)),
      {},
      selector,
      text,
    );
  const settled = async () => {
    await page.waitForSelector("h1, .failure");
    await page.waitForFunction(() => !document.querySelector(".spinner, .waiting"));
  };
  /** Loads the place as if its address were typed. */
  const go = async (hash) => {
    await page.goto("about:blank");
    await page.goto(`${base}/#/${hash}`);
    await settled();
  };
  const press = async (text) => {
    for (const button of await page.$$("main button, main a")) {
      if ((await button.evaluate((one) => one.textContent.trim())) === text) return button.click();
    }
    throw new Error(`no button '${text}'`);
  };
  const fill = async (selector, text) => {
    await page.click(selector, { count: 3 });
    await page.keyboard.press("Backspace");
    await page.type(selector, text);
  };
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  /** Adds axe-core's serious findings on the present page. */
  const checkAccessible = async (name) => {
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run());
    if (found.passes.length <= 5) faults.push(`axe did not look at ${name}`);
    for (const one of found.violations.filter((v) => ["serious", "critical"].includes(v.impact)))
      faults.push(
        `axe, ${name}: ${one.id}: ${one.nodes
          .map((n) => n.html.slice(0, 120))
          .slice(0, 3)
          .join(" | ")}`,
      );
  };
  const useScheme = (scheme) =>
    page.evaluate((one) => {
      localStorage.setItem("theme", one);
      document.documentElement.dataset.theme = one;
      window.dispatchEvent(new Event("themechange"));
    }, scheme);
  return { browser, page, contains, settled, go, press, fill, checkAccessible, useScheme };
}
