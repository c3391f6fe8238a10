import type { TrialRow } from "../api/types";

/** A cost that is weighed against the time. */
export interface TradeOff {
  key: string;
  title: string;
  of: (row: TrialRow) => number | null;
  text: (value: number) => string;
}

const positive = (value: number | null | undefined) => (value ? value : null);

export const tradeOffs: TradeOff[] = [
  {
    key: "energy",
    title: "energy of a launch",
    of: (row) => positive(row.energy_joules),
    text: (joules) => `${(joules * 1000).toPrecision(3)} mJ`,
  },
  {
    key: "registers",
    title: "registers of a thread",
    of: (row) => positive(row.registers),
    text: (count) => String(count),
  },
  {
    key: "memory",
    title: "memory of workspaces",
    of: (row) => row.memory_bytes ?? null,
    text: (bytes) => `${(bytes / 2 ** 20).toPrecision(3)} MiB`,
  },
];

/** Rows that no other beats in both time and cost, by rising cost. */
export function paretoFront(rows: TrialRow[], cost: TradeOff): TrialRow[] {
  const order = [...rows].sort(
    (a, b) =>
      (cost.of(a) as number) - (cost.of(b) as number) ||
      (a.time_ns as number) - (b.time_ns as number),
  );
  const front: TrialRow[] = [];
  for (const row of order) {
    const last = front.at(-1);
    if (!last || (row.time_ns as number) < (last.time_ns as number)) front.push(row);
  }
  return front;
}

export interface DiffLine {
  kind: "same" | "old" | "new";
  text: string;
}

/** A shortest edit script of lines (longest common subsequence); whole texts beyond `most` lines. */
export function diffLines(before: string, after: string, most = 3000): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  const all = (kind: DiffLine["kind"], lines: string[]) => lines.map((text) => ({ kind, text }));
  if (a.length > most || b.length > most) return [...all("old", a), ...all("new", b)];
  const width = b.length + 1;
  const length = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => length[i * width + j] as number;
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j)
      length[i * width + j] =
        a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i++] as string });
      ++j;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: "old", text: a[i++] as string });
    } else {
      lines.push({ kind: "new", text: b[j++] as string });
    }
  }
  return lines;
}

/** The two lines of a roofline, in FLOP/s and byte/s. */
export interface Roof {
  flops: number;
  bytes: number;
}

/** FP32 on CUDA cores: a multiply-add is two operations. `clock_ghz` and `dram_gbps` are 1e9. */
export function roofOf(profile: Record<string, unknown> | null | undefined): Roof | null {
  const number = (name: string) => Number(profile?.[name]) || 0;
  const flops = 2 * number("sms") * number("fp32_per_clk") * number("clock_ghz") * 1e9;
  const bytes = number("dram_gbps") * 1e9;
  return flops > 0 && bytes > 0 ? { flops, bytes } : null;
}
