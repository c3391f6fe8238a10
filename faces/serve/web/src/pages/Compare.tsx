import { useCallback } from "react";
import { useGet } from "../api/hooks";
import type { Run } from "../api/types";
import { baselineNs } from "../lib/baseline";
import { durationText, timeText } from "../lib/format";
import { replaceQuery, routeText, type Route } from "../lib/route";
import { Card, Empty, EvidenceTag, Failure, Loading } from "../parts/basics";
import { Chart, color } from "../parts/chart";

type Fact = [string, (run: Run) => React.ReactNode];

const facts: Fact[] = [
  [
    "GPU",
    (run) => (
      <>
        {run.device} <EvidenceTag evidence={run.evidence} />
      </>
    ),
  ],
  ["best", (run) => timeText(run.best_ns)],
  [
    "baseline",
    (run) => {
      const one = baselineNs(run);
      return one ? `${timeText(one.ns)} (${one.name})` : "–";
    },
  ],
  [
    "speed-up",
    (run) => {
      const one = baselineNs(run);
      return one && run.best_ns ? `${(one.ns / run.best_ns).toFixed(2)}×` : "–";
    },
  ],
  ["physical floor", (run) => timeText(run.summary?.floor_ns)],
  ["trials", (run) => run.trials.toLocaleString("en")],
  ["time spent", (run) => durationText(run.seconds)],
  ["stopped because", (run) => run.summary?.stop_reason ?? run.status],
  ["command", (run) => <code>{run.command}</code>],
];

function Bars({ a, b }: { a: Run; b: Run }) {
  const make = useCallback(() => {
    const quiet = color("--quiet");
    const bars = [
      ["A, baseline", baselineNs(a)?.ns],
      ["A, best", a.best_ns],
      ["B, baseline", baselineNs(b)?.ns],
      ["B, best", b.best_ns],
    ]
      .filter((one): one is [string, number] => typeof one[1] === "number")
      .reverse();
    return {
      animation: false,
      grid: { left: 92, right: 72, top: 8, bottom: 28 },
      xAxis: {
        type: "value",
        axisLabel: { color: quiet, formatter: (ns: number) => timeText(ns), hideOverlap: true },
        splitLine: { lineStyle: { color: color("--line") } },
      },
      yAxis: { type: "category", data: bars.map((one) => one[0]), axisLabel: { color: quiet } },
      series: [
        {
          type: "bar",
          barMaxWidth: 26,
          data: bars.map(([name, ns]) => ({
            value: ns,
            itemStyle: { color: color(name.endsWith("best") ? "--accent" : "--faint") },
          })),
          label: {
            show: true,
            position: "right",
            color: color("--text"),
            formatter: ({ value }: { value: number }) => timeText(value),
          },
        },
      ],
    };
  }, [a, b]);
  return (
    <Chart
      make={make}
      height={200}
      label={`best of A ${timeText(a.best_ns)}, best of B ${timeText(b.best_ns)}`}
    />
  );
}

function Table({ a, b }: { a: Run; b: Run }) {
  const names = [...new Set([...a.space.parameters, ...b.space.parameters].map((one) => one.name))];
  const value = (run: Run, name: string) => String(run.summary?.best_configuration?.[name] ?? "–");
  return (
    <div className="scroll">
      <table className="compare">
        <thead>
          <tr>
            <th />
            <th>
              A: <a href={routeText(["runs", a.id])}>{a.id}</a>
            </th>
            <th>
              B: <a href={routeText(["runs", b.id])}>{b.id}</a>
            </th>
          </tr>
        </thead>
        <tbody>
          {facts.map(([name, show]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{show(a)}</td>
              <td>{show(b)}</td>
            </tr>
          ))}
          {names.map((name) => (
            <tr key={name} className={value(a, name) === value(b, name) ? "" : "differs"}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>{value(a, name)}</td>
              <td>{value(b, name)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Choice({ label, name, route }: { label: string; name: "a" | "b"; route: Route }) {
  const { data } = useGet<{ runs: Run[] }>("/runs?limit=100");
  return (
    <label>
      {label}{" "}
      <select
        value={route.query.get(name) ?? ""}
        onChange={(e) => replaceQuery(route, { [name]: e.target.value })}
      >
        <option value="">choose a run</option>
        {data?.runs.map((run) => (
          <option key={run.id} value={run.id}>
            {run.id}
          </option>
        ))}
      </select>
    </label>
  );
}

export default function Compare({ route }: { route: Route }) {
  const path = (name: string) => {
    const id = route.query.get(name);
    return id ? `/runs/${encodeURIComponent(id)}` : null;
  };
  const a = useGet<Run>(path("a"));
  const b = useGet<Run>(path("b"));
  const error = a.error ?? b.error;
  const chosen = path("a") && path("b");
  return (
    <>
      <div className="title">
        <h1>Compare two runs</h1>
      </div>
      <div className="tools">
        <Choice label="A" name="a" route={route} />
        <Choice label="B" name="b" route={route} />
      </div>
      {error && <Failure error={error} />}
      {!chosen && (
        <Empty>
          <p>Choose two runs, here or in the list of runs.</p>
        </Empty>
      )}
      {chosen && !error && (!a.data || !b.data) && <Loading what="both runs" />}
      {chosen && a.data && b.data && (
        <>
          {a.data.evidence !== b.data.evidence && (
            <p className="state warn" role="note">
              One time is measured and one is predicted: their ratio says nothing about the kernels.
            </p>
          )}
          <Card
            title={
              a.data.best_ns && b.data.best_ns && a.data.evidence === b.data.evidence
                ? `B is ${(a.data.best_ns / b.data.best_ns).toFixed(2)} times as fast as A`
                : "Times"
            }
          >
            <Bars a={a.data} b={b.data} />
          </Card>
          <Card title="Facts and best configurations">
            <Table a={a.data} b={b.data} />
          </Card>
        </>
      )}
    </>
  );
}
