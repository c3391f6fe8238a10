import type { Parameter, TrialRow, Value } from "../api/types";

/** The best time for each pair of values of two parameters. */
export interface Heat {
  x: string[];
  y: string[];
  cells: { x: number; y: number; ns: number; trials: number; best: number }[];
}

const text = (value: Value) => String(value);

export function heatOf(trials: TrialRow[], across: Parameter, down: Parameter): Heat {
  const x = across.values.map(text);
  const y = down.values.map(text);
  const cells = new Map<string, Heat["cells"][number]>();
  for (const trial of trials) {
    const column = x.indexOf(text(trial.configuration[across.name] ?? ""));
    const row = y.indexOf(text(trial.configuration[down.name] ?? ""));
    if (column < 0 || row < 0 || trial.time_ns === null) continue;
    const key = `${column},${row}`;
    const cell = cells.get(key) ?? { x: column, y: row, ns: Infinity, trials: 0, best: 0 };
    cell.trials += 1;
    if (trial.time_ns < cell.ns) Object.assign(cell, { ns: trial.time_ns, best: trial.number });
    cells.set(key, cell);
  }
  return { x, y, cells: [...cells.values()] };
}

/**
 * The parameters by their influence on the time: the variance of the means of the log time over a
 * parameter's values, as a share of the whole variance (a first-order effect).
 */
export function influences(
  trials: TrialRow[],
  parameters: Parameter[],
): { name: string; share: number }[] {
  const timed = trials.filter((trial) => trial.time_ns !== null && trial.time_ns > 0);
  const logs = timed.map((trial) => Math.log(trial.time_ns as number));
  const mean = (values: number[]) =>
    values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);
  const all = mean(logs);
  const whole = mean(logs.map((one) => (one - all) ** 2));
  return parameters
    .map((parameter) => {
      const groups = new Map<string, number[]>();
      timed.forEach((trial, i) => {
        const key = text(trial.configuration[parameter.name] ?? "");
        groups.set(key, [...(groups.get(key) ?? []), logs[i] as number]);
      });
      const between =
        [...groups.values()].reduce(
          (sum, group) => sum + group.length * (mean(group) - all) ** 2,
          0,
        ) / Math.max(1, logs.length);
      return { name: parameter.name, share: whole > 0 ? between / whole : 0 };
    })
    .sort((a, b) => b.share - a.share);
}
