import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { timeText } from "../lib/format";

export interface Point {
  trial: number;
  time_ns: number | null;
  best_ns: number | null;
}

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** 1, 2 and 5 times powers of ten between two times; only powers where that would be many. */
export function timeTicks(low: number, high: number): number[] {
  const ticks: number[] = [];
  const decades = Math.log10(high / low);
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power) {
    for (const digit of decades > 3 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8]) {
      const tick = digit * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

function optionsFor(width: number): uPlot.Options {
  const axis = {
    stroke: color("--quiet"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line") },
  };
  const label = (_: uPlot, value: number | null) => timeText(value);
  return {
    width,
    height: width < 500 ? 220 : 300,
    scales: {
      x: { time: false },
      y: { distr: 3, range: (_: uPlot, low: number, high: number) => [low / 1.2, high * 1.2] },
    },
    axes: [
      { ...axis, label: "trial", incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000] },
      {
        ...axis,
        size: 78,
        splits: (_: uPlot, __: number, low: number, high: number) => timeTicks(low, high),
        filter: (_: uPlot, ticks: number[]) => ticks,
        values: (_: uPlot, ticks: (number | null)[]) =>
          ticks.map((one) => (one === null ? "" : timeText(one))),
      },
    ],
    series: [
      { label: "trial" },
      {
        label: "each",
        value: label,
        stroke: color("--quiet"),
        paths: () => null,
        points: { show: true, size: 5, fill: color("--quiet") },
      },
      {
        label: "best so far",
        value: label,
        stroke: color("--accent"),
        width: 2.5,
        points: { show: false },
        paths: uPlot.paths.stepped?.({ align: 1 }),
      },
    ],
  };
}

function dataOf(points: Point[]): uPlot.AlignedData {
  return [
    points.map((one) => one.trial),
    points.map((one) => one.time_ns),
    points.map((one) => one.best_ns),
  ];
}

/** The time of each trial and the best so far, on a logarithmic scale. */
export function LiveChart({ points }: { points: Point[] }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(points);
  latest.current = points;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsFor(element.clientWidth), dataOf(latest.current), element);
    };
    draw();
    const resized = new ResizeObserver(([entry]) => {
      if (entry && plot.current && Math.abs(entry.contentRect.width - plot.current.width) > 1)
        draw();
    });
    resized.observe(element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    window.addEventListener("themechange", draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", draw);
      window.removeEventListener("themechange", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(points)), [points]);
  const best = points.at(-1)?.best_ns;
  return (
    <div
      className="plot"
      ref={place}
      role="img"
      aria-label={`${points.length} trials; best so far ${timeText(best)}`}
    />
  );
}
