/** "312 ns", "4.10 µs", "1.23 ms", "2.00 s"; "–" for nothing. */
export function timeText(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "–";
  const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
  ];
  for (const [size, unit] of units) {
    if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

/** "12 s", "3 min 20 s", "2 h 5 min". */
export function durationText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** How long ago a UTC date was. */
export function agoText(date: string, now = Date.now()): string {
  const seconds = (now - Date.parse(date)) / 1000;
  if (!Number.isFinite(seconds)) return date;
  if (seconds < 5) return "just now";
  const days = Math.floor(seconds / 86400);
  return days > 0 ? `${days} d ago` : `${durationText(seconds)} ago`;
}

export function speedupText(ratio: number | null | undefined): string {
  return ratio === null || ratio === undefined ? "–" : `${ratio.toFixed(2)}×`;
}

/** Shapes as people write them: "8192,4096" or "2,3 3,4". Null where that is no list of sizes. */
export function parseShapes(text: string): number[][] | null {
  const shapes = text
    .trim()
    .split(/[\s;]+/)
    .filter((one) => one !== "")
    .map((one) => one.split(/[,x×]/));
  if (shapes.length === 0) return null;
  const numbers = shapes.map((shape) =>
    shape.map((size) => (/^\d+$/.test(size) ? Number(size) : NaN)),
  );
  return numbers.flat().every((size) => size >= 1) ? numbers : null;
}

/** A budget as people write it: "60", "60 trials", "5m", "200,90s". Null where it is none. */
export function parseBudget(text: string): { trials?: number; seconds?: number } | null {
  const budget: { trials?: number; seconds?: number } = {};
  const parts = text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  for (const part of parts) {
    const found = /^(\d+)\s*(trials?|s|m|h|)$/.exec(part);
    if (!found || Number(found[1]) === 0) return null;
    const scale = { s: 1, m: 60, h: 3600 }[found[2] ?? ""];
    if (scale) budget.seconds = Number(found[1]) * scale;
    else budget.trials = Number(found[1]);
  }
  return parts.length > 0 ? budget : null;
}
