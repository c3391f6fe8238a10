import { useCallback, useMemo } from "react";
import type { Parameter, TrialRow } from "../api/types";
import { paretoFront, tradeOffs, type TradeOff } from "../lib/analysis";
import { timeText } from "../lib/format";
import { influences } from "../lib/heat";
import { replaceQuery, type Route } from "../lib/route";
import { Chart, color, fastToSlow, tooltip } from "./chart";
import { Heatmap } from "./Heatmap";

interface Props {
  trials: TrialRow[];
  parameters: Parameter[];
  route: Route;
  onTrial: (number: number) => void;
}

/** Lines beyond these hide each other; the fastest are drawn. */
const mostLines = 400;

function Parallel({ trials, parameters, onTrial }: Props) {
  const tunable = useMemo(() => parameters.filter((one) => one.values.length > 1), [parameters]);
  const shown = useMemo(
    () => trials.filter((one) => one.time_ns !== null).slice(0, mostLines),
    [trials],
  );
  const make = useCallback(() => {
    const quiet = color("--quiet");
    const times = shown.map((one) => one.time_ns as number);
    const axisLabel = { color: quiet, backgroundColor: color("--panel"), padding: [1, 3] };
    const axis = { nameTextStyle: { color: color("--text"), fontWeight: 600 }, axisLabel };
    const best = shown[0];
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      parallel: { left: 48, right: 92, top: 36, bottom: 16 },
      parallelAxis: [
        ...tunable.map((one, dim) => ({
          ...axis,
          dim,
          name: one.name,
          type: "category",
          data: one.values.map(String),
        })),
        {
          ...axis,
          dim: tunable.length,
          name: "time",
          type: "log",
          inverse: true,
          nameLocation: "start",
          min: Math.min(...times),
          max: Math.max(...times, Math.min(...times) * 1.001),
          axisLabel: { ...axisLabel, formatter: (ns: number) => timeText(ns) },
        },
      ],
      visualMap: {
        show: false,
        type: "continuous",
        dimension: tunable.length + 1,
        min: Math.log10(Math.min(...times)),
        max: Math.log10(Math.max(...times, Math.min(...times) * 1.001)),
        inRange: { color: fastToSlow },
      },
      series: [
        {
          type: "parallel",
          lineStyle: { width: 1.5, opacity: 0.45 },
          emphasis: { lineStyle: { width: 3, opacity: 1 } },
          // Drawn last, the best lies on top.
          data: [...shown].reverse().map((one) => ({
            value: [
              ...tunable.map((p) => String(one.configuration[p.name] ?? "")),
              one.time_ns,
              Math.log10(one.time_ns as number),
            ],
            number: one.number,
            lineStyle: one === best ? { width: 4, opacity: 1 } : undefined,
          })),
        },
      ],
    };
  }, [shown, tunable]);
  if (shown.length === 0) return <p className="state empty">No trial has a time yet.</p>;
  if (tunable.length === 0)
    return <p className="state empty">The run has no parameter to choose.</p>;
  return (
    <>
      <div className="wide">
        <Chart
          make={make}
          height={360}
          width={Math.max(560, 110 * (tunable.length + 1))}
          label={`${shown.length} trials as lines over ${tunable.map((p) => p.name).join(", ")} and time`}
          onClick={(data) => onTrial((data as { number: number }).number)}
        />
      </div>
      <p className="hint">
        Each line is a trial; thick: the best. Drag along an axis to keep the lines that cross there,
        click the axis to release them.
        {trials.length > mostLines && ` The ${mostLines} fastest are drawn.`}
      </p>
    </>
  );
}

function Importance({ trials, parameters }: Props) {
  const order = useMemo(
    () =>
      influences(
        trials,
        parameters.filter((one) => one.values.length > 1),
      ),
    [trials, parameters],
  );
  const make = useCallback(() => {
    const quiet = color("--quiet");
    const rows = [...order].reverse();
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      grid: { left: 8, right: 48, top: 8, bottom: 8, containLabel: true },
      xAxis: {
        type: "value",
        max: 100,
        axisLabel: { color: quiet, formatter: "{value} %" },
        splitLine: { lineStyle: { color: color("--line") } },
      },
      yAxis: {
        type: "category",
        data: rows.map((one) => one.name),
        axisLabel: { color: color("--text") },
        axisTick: { show: false },
      },
      series: [
        {
          type: "bar",
          barMaxWidth: 22,
          itemStyle: { color: color("--accent"), borderRadius: [0, 4, 4, 0] },
          label: { show: true, position: "right", color: quiet, formatter: "{c} %" },
          data: rows.map((one) => Math.round(1000 * one.share) / 10),
        },
      ],
    };
  }, [order]);
  if (order.length === 0)
    return <p className="state empty">The run has no parameter to choose.</p>;
  return (
    <>
      <Chart
        make={make}
        height={70 + 34 * order.length}
        label={order.map((one) => `${one.name} ${Math.round(100 * one.share)} %`).join(", ")}
      />
      <p className="hint">
        How much of the variation of log time each parameter explains on its own, over the trials that
        have a time. Parameters that act only together show less.
      </p>
    </>
  );
}

function ParetoChart({ trials, against, onTrial }: Props & { against: TradeOff }) {
  const points = useMemo(
    () => trials.filter((one) => one.time_ns !== null && against.of(one) !== null).slice(0, 4000),
    [trials, against],
  );
  const front = useMemo(() => paretoFront(points, against), [points, against]);
  const make = useCallback(() => {
    const quiet = color("--quiet");
    const at = (one: TrialRow) => ({
      value: [against.of(one), one.time_ns],
      number: one.number,
    });
    const axis = {
      nameLocation: "middle",
      nameTextStyle: { color: quiet },
      splitLine: { lineStyle: { color: color("--line") } },
    };
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      grid: { left: 84, right: 16, top: 16, bottom: 56 },
      xAxis: {
        ...axis,
        type: "value",
        scale: true,
        name: against.title,
        nameGap: 32,
        axisLabel: { color: quiet, hideOverlap: true, formatter: against.text },
      },
      yAxis: {
        ...axis,
        type: "log",
        name: "time",
        nameGap: 64,
        min: "dataMin",
        max: "dataMax",
        axisLabel: { color: quiet, formatter: (ns: number) => timeText(ns) },
      },
      tooltip: {
        ...tooltip(),
        formatter: ({ data }: { data: { value: [number, number]; number: number } }) =>
          `trial ${data.number}\n${timeText(data.value[1])}, ${against.text(data.value[0])}`,
      },
      series: [
        {
          type: "scatter",
          symbolSize: 7,
          itemStyle: { color: color("--faint") },
          data: points.map(at),
        },
        {
          type: "line",
          step: "end",
          symbol: "circle",
          symbolSize: 10,
          lineStyle: { color: color("--accent"), width: 2 },
          itemStyle: { color: color("--accent") },
          data: front.map(at),
        },
      ],
    };
  }, [points, front, against]);
  if (points.length === 0)
    return <p className="state empty">No trial has both a time and {against.title}.</p>;
  return (
    <>
      <Chart
        make={make}
        height={380}
        label={`Time against ${against.title}: ${points.length} trials, ${front.length} on the front`}
        onClick={(data) => onTrial((data as { number: number }).number)}
      />
      <p className="hint">
        On the line: trials that no other beats in both. A click opens a trial.
      </p>
    </>
  );
}

function Pareto(props: Props) {
  const against =
    tradeOffs.find((one) => one.key === props.route.query.get("against")) ??
    (tradeOffs[0] as TradeOff);
  return (
    <>
      <div className="tools">
        <label>
          time against{" "}
          <select
            value={against.key}
            onChange={(e) => replaceQuery(props.route, { against: e.target.value })}
          >
            {tradeOffs.map((one) => (
              <option key={one.key} value={one.key}>
                {one.title}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ParetoChart {...props} against={against} />
    </>
  );
}

const views = {
  heatmap: { title: "Heatmap", show: Heatmap },
  parallel: { title: "Parallel coordinates", show: Parallel },
  importance: { title: "Importance", show: Importance },
  pareto: { title: "Trade-offs", show: Pareto },
} as const;

/** The fastest trials from four sides; the address says which. */
export function Analysis(props: Props) {
  const wanted = props.route.query.get("view") ?? "";
  const view = wanted in views ? (wanted as keyof typeof views) : "heatmap";
  const Show = views[view].show;
  return (
    <>
      <div className="tabs" role="group" aria-label="view of the trials">
        {Object.entries(views).map(([name, one]) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === view}
            onClick={() => replaceQuery(props.route, { view: name })}
          >
            {one.title}
          </button>
        ))}
      </div>
      <Show {...props} />
    </>
  );
}
