import { useCallback, useMemo } from "react";
import type { Parameter, TrialRow } from "../api/types";
import { timeText } from "../lib/format";
import { heatOf, influences } from "../lib/heat";
import { replaceQuery, type Route } from "../lib/route";
import { Chart, color, fastToSlow, tooltip } from "./chart";

interface Props {
  trials: TrialRow[];
  parameters: Parameter[];
  route: Route;
  onTrial: (number: number) => void;
}

function Choice({
  label,
  value,
  parameters,
  onChange,
}: {
  label: string;
  value: string;
  parameters: Parameter[];
  onChange: (name: string) => void;
}) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {parameters.map((one) => (
          <option key={one.name}>{one.name}</option>
        ))}
      </select>
    </label>
  );
}

/** Best time by the values of two parameters; the two that matter most unless the address says. */
export function Heatmap({ trials, parameters, route, onTrial }: Props) {
  const tunable = useMemo(() => parameters.filter((one) => one.values.length > 1), [parameters]);
  const order = useMemo(() => influences(trials, tunable), [trials, tunable]);
  const chosen = (key: string, fallback: number) => {
    const named = tunable.find((one) => one.name === route.query.get(key));
    return named ?? tunable.find((one) => one.name === order[fallback]?.name);
  };
  const across = chosen("x", 0);
  const down = chosen("y", 1);
  const heat = useMemo(
    () => (across && down ? heatOf(trials, across, down) : null),
    [trials, across, down],
  );
  const make = useCallback(() => {
    const logs = heat!.cells.map((cell) => Math.log10(cell.ns));
    const quiet = color("--quiet");
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      grid: { left: 64, right: 12, top: 12, bottom: 84 },
      xAxis: {
        type: "category",
        data: heat!.x,
        name: across!.name,
        nameLocation: "middle",
        nameGap: 26,
        axisLabel: { color: quiet },
        nameTextStyle: { color: quiet },
        splitArea: { show: false },
      },
      yAxis: {
        type: "category",
        data: heat!.y,
        name: down!.name,
        nameLocation: "middle",
        nameGap: 44,
        axisLabel: { color: quiet },
        nameTextStyle: { color: quiet },
      },
      tooltip: {
        ...tooltip(),
        formatter: ({ data }: { data: { cell: { ns: number; trials: number; best: number } } }) =>
          `${timeText(data.cell.ns)}\ntrial ${data.cell.best}, the best of ${data.cell.trials}`,
      },
      visualMap: {
        min: Math.min(...logs),
        max: Math.max(...logs, Math.min(...logs) + 1e-6),
        dimension: 2,
        orient: "horizontal",
        left: "center",
        bottom: 0,
        itemWidth: 12,
        itemHeight: 140,
        calculable: false,
        formatter: (value: number) => timeText(10 ** value),
        textStyle: { color: quiet },
        text: ["slow", "fast"],
        inRange: { color: fastToSlow },
      },
      series: [
        {
          type: "heatmap",
          itemStyle: { borderColor: color("--panel"), borderWidth: 1 },
          data: heat!.cells.map((cell) => ({ value: [cell.x, cell.y, Math.log10(cell.ns)], cell })),
        },
      ],
    };
  }, [heat, across, down]);
  if (!across || !down || !heat)
    return <p className="state empty">A heatmap needs two parameters with more than one value.</p>;
  if (heat.cells.length === 0) return <p className="state empty">No trial has a time yet.</p>;
  const change = (key: string) => (name: string) => replaceQuery(route, { [key]: name });
  return (
    <>
      <div className="tools">
        <Choice label="across" value={across.name} parameters={tunable} onChange={change("x")} />
        <Choice label="down" value={down.name} parameters={tunable} onChange={change("y")} />
      </div>
      <Chart
        make={make}
        height={Math.min(480, 170 + 34 * heat.y.length)}
        label={`Best time by ${across.name} and ${down.name}: ${heat.cells.length} cells`}
        onClick={(data) => onTrial((data as { cell: { best: number } }).cell.best)}
      />
      <p className="hint">
        {order
          .slice(0, 4)
          .map((one) => `${one.name} explains ${Math.round(100 * one.share)} %`)
          .join(", ")}{" "}
        of the variation of log time on its own. A click opens a cell's best trial.
      </p>
    </>
  );
}
