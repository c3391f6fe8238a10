import { describe, expect, it } from "vitest";
import { diffLines, paretoFront, roofOf, tradeOffs } from "./analysis";
import { agoText, durationText, parseBudget, parseShapes, timeText } from "./format";
import { heatOf, influences } from "./heat";
import { PagedRows, visibleRows } from "./pages";
import { parseRoute, routeText } from "./route";
import type { TrialRow } from "../api/types";

const trial = (
  number: number,
  configuration: TrialRow["configuration"],
  time_ns: number | null,
): TrialRow => ({ number, configuration, time_ns, proposer: "", verdict: "", reason: "" });

describe("texts", () => {
  it("shows times and durations with three digits", () => {
    expect(timeText(312.4)).toBe("312 ns");
    expect(timeText(3669.9)).toBe("3.67 µs");
    expect(timeText(2.5e9)).toBe("2.50 s");
    expect(timeText(null)).toBe("–");
    expect(durationText(200)).toBe("3 min 20 s");
    expect(agoText("2026-11-27T00:00:00Z", Date.parse("2026-11-27T00:01:00Z"))).toBe(
      "1 min 0 s ago",
    );
  });
  it("reads shapes and budgets as people write them", () => {
    expect(parseShapes("8192,4096")).toEqual([[8192, 4096]]);
    expect(parseShapes(" 2x3  3,4 ")).toEqual([
      [2, 3],
      [3, 4],
    ]);
    expect(parseShapes("")).toBeNull();
    expect(parseShapes("8,0")).toBeNull();
    expect(parseShapes("8,-1")).toBeNull();
    expect(parseBudget("200,90s")).toEqual({ trials: 200, seconds: 90 });
    expect(parseBudget("5m")).toEqual({ seconds: 300 });
    expect(parseBudget("60 trials")).toEqual({ trials: 60 });
    expect(parseBudget("soon")).toBeNull();
    expect(parseBudget("0")).toBeNull();
  });
});

describe("routes", () => {
  it("survive the way through the address bar", () => {
    const text = routeText(["runs", "a/b"], { x: "tile m", y: null });
    expect(text).toBe("#/runs/a%2Fb?x=tile+m");
    const route = parseRoute(text);
    expect(route.parts).toEqual(["runs", "a/b"]);
    expect(route.query.get("x")).toBe("tile m");
    expect(parseRoute("").parts).toEqual([]);
  });
});

describe("heat", () => {
  const parameters = [
    { name: "a", values: [1, 2] },
    { name: "b", values: ["x", "y"] },
  ];
  const trials = [
    trial(1, { a: 1, b: "x" }, 10),
    trial(2, { a: 1, b: "x" }, 8),
    trial(3, { a: 2, b: "y" }, 80),
    trial(4, { a: 2, b: "x" }, null),
    trial(5, { a: 2, b: "x" }, 90),
    trial(6, {}, 1),
  ];
  it("keeps the best time of each cell and leaves out failures", () => {
    const heat = heatOf(trials, parameters[0]!, parameters[1]!);
    expect(heat.cells).toContainEqual({ x: 0, y: 0, ns: 8, trials: 2, best: 2 });
    expect(heat.cells).toHaveLength(3);
  });
  it("orders parameters by influence", () => {
    expect(influences(trials.slice(0, 5), parameters)[0]!.name).toBe("a");
  });
});

describe("analysis", () => {
  it("keeps what no other trial beats in both time and cost", () => {
    const registers = tradeOffs.find((one) => one.key === "registers")!;
    const rows = [
      [64, 10],
      [32, 20],
      [32, 25],
      [48, 22],
      [128, 9],
    ].map(([count, ns], i) => ({ ...trial(i + 1, {}, ns!), registers: count! }));
    expect(paretoFront(rows, registers).map((one) => one.number)).toEqual([2, 1, 5]);
  });
  it("shows changed lines between those that stay", () => {
    const lines = diffLines("a\nb\nc", "a\nx\nc\nd");
    expect(lines.map((one) => `${one.kind} ${one.text}`)).toEqual([
      "same a",
      "old b",
      "new x",
      "same c",
      "new d",
    ]);
    expect(diffLines("a\nb", "a", 1).map((one) => one.kind)).toEqual(["old", "old", "new"]);
  });
  it("draws the roof of an A100 at its data sheet's figures", () => {
    const roof = roofOf({ sms: 108, fp32_per_clk: 64, clock_ghz: 1.41, dram_gbps: 2039 })!;
    expect(roof.flops / 1e12).toBeCloseTo(19.5, 1);
    expect(roof.bytes).toBe(2039e9);
    expect(roofOf(null)).toBeNull();
  });
});

describe("pages", () => {
  it("asks once for what is in view, and forgets the oldest", async () => {
    const asked: number[] = [];
    const rows = new PagedRows<number>(
      async (offset, limit) => {
        asked.push(offset);
        return { rows: Array.from({ length: limit }, (_, i) => offset + i), total: 1000 };
      },
      () => {},
      () => {},
      10,
      2,
    );
    rows.show(5, 14);
    rows.show(5, 14);
    await Promise.resolve();
    await Promise.resolve();
    expect(asked).toEqual([0, 10]);
    expect(rows.total).toBe(1000);
    expect(rows.row(13)).toBe(13);
    rows.show(500, 500);
    await Promise.resolve();
    await Promise.resolve();
    expect(rows.row(500)).toBe(500);
    expect(rows.row(5)).toBeUndefined();
  });
  it("draws a little beyond the view", () => {
    expect(visibleRows(0, 100, 10, 1000)).toEqual({ first: 0, last: 18 });
    expect(visibleRows(9990, 100, 10, 1000)).toEqual({ first: 991, last: 999 });
  });
});
