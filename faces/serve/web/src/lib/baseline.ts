import type { Run as RunType } from "../api/types";

/** The kernel that a run's best is compared with, and its time. */
export function baselineNs(run: RunType): { name: string; ns: number } | null {
  for (const one of run.summary?.baselines ?? []) {
    const ns = one.measurement?.median_ns ?? one.measurement?.time_ns ?? one.estimate?.time_ns;
    if (ns) return { name: one.name, ns };
  }
  return null;
}
