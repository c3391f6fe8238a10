import type { Run, RunResult } from "../api/types";

export type Baseline = NonNullable<RunResult["baselines"]>[number];

/** Its time in ns, measured or predicted; null where it has none. */
export function timeOf(baseline: Baseline): number | null {
  const { measurement, estimate } = baseline;
  return measurement?.median_ns ?? measurement?.time_ns ?? estimate?.time_ns ?? null;
}

/** The kernel that a run's best is compared with, and its time. */
export function baselineNs(run: Run): { name: string; ns: number } | null {
  for (const one of run.summary?.baselines ?? []) {
    const ns = timeOf(one);
    if (ns) return { name: one.name, ns };
  }
  return null;
}
