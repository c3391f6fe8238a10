import { useCallback, useMemo } from "react";
import { useGet } from "../api/hooks";
import type { Run, Trial } from "../api/types";
import { diffLines, roofOf, type Roof } from "../lib/analysis";
import { baselineNs } from "../lib/baseline";
import { speedupText, timeText } from "../lib/format";
import { routeText } from "../lib/route";
import { Card, EvidenceTag, Failure, Figure, Loading, Tag } from "../parts/basics";
import { Chart, color, tooltip } from "../parts/chart";
import { Checks, Facts, named } from "../parts/TrialDetail";

interface Shown {
  run: Run;
  trial: Trial;
}

const numberOf = (value: unknown) => (typeof value === "number" ? value : null);

function timeOf(trial: Trial): number | null {
  return numberOf(trial.measurement?.median_ns) ?? numberOf(trial.estimate?.time_ns);
}

function Figures({ run, trial }: Shown) {
  const ns = timeOf(trial);
  const baseline = baselineNs(run);
  const low = numberOf(trial.estimate?.low_ns);
  const high = numberOf(trial.estimate?.high_ns);
  const occupancy = numberOf(trial.estimate?.occupancy);
  return (
    <dl className="figures">
      <Figure label="time" value={timeText(ns)} detail={<EvidenceTag evidence={run.evidence} />} />
      <Figure
        label="speed-up"
        value={speedupText(baseline && ns ? baseline.ns / ns : null)}
        detail={baseline && `over ${baseline.name}, ${timeText(baseline.ns)}`}
      />
      {low !== null && high !== null && (
        <Figure
          label="the model's range"
          value={timeText(low)}
          detail={`to ${timeText(high)}`}
        />
      )}
      <Figure
        label="limited by"
        value={String(trial.estimate?.limiter ?? "–")}
        detail={occupancy === null ? "" : `occupancy ${Math.round(100 * occupancy)} %`}
      />
    </dl>
  );
}

function Configuration({ run, trial }: Shown) {
  const values = named(trial, run.space.parameters);
  if (!values) return null;
  const best = run.summary?.best_configuration;
  return (
    <Card title="Configuration">
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>parameter</th>
              <th className="right">here</th>
              <th className="right">best of the run</th>
              <th>meaning</th>
            </tr>
          </thead>
          <tbody>
            {run.space.parameters.map((one) => {
              const here = values[one.name];
              const there = best?.[one.name];
              const differs = there !== undefined && String(there) !== String(here);
              return (
                <tr key={one.name} className={differs ? "differs" : ""}>
                  <td>
                    <code>{one.name}</code>
                  </td>
                  <td className="right strong">{String(here)}</td>
                  <td className="right">{there === undefined ? "–" : String(there)}</td>
                  <td>{one.meaning}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

interface Part {
  name: string;
  ns: number;
  overlapped: boolean;
}

function Parts({ trial }: { trial: Trial }) {
  const parts = useMemo(() => {
    const all = (trial.estimate?.parts ?? []) as Part[];
    return all.filter((one) => one.ns > 0).sort((a, b) => a.ns - b.ns);
  }, [trial]);
  const make = useCallback(() => {
    const quiet = color("--quiet");
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      grid: { left: 8, right: 72, top: 8, bottom: 8, containLabel: true },
      xAxis: {
        type: "value",
        axisLabel: { color: quiet, hideOverlap: true, formatter: (ns: number) => timeText(ns) },
        splitLine: { lineStyle: { color: color("--line") } },
      },
      yAxis: {
        type: "category",
        data: parts.map((one) => one.name),
        axisLabel: { color: color("--text") },
        axisTick: { show: false },
      },
      series: [
        {
          type: "bar",
          barMaxWidth: 20,
          label: {
            show: true,
            position: "right",
            color: quiet,
            formatter: ({ value }: { value: number }) => timeText(value),
          },
          data: parts.map((one) => ({
            value: one.ns,
            itemStyle: {
              color: one.overlapped ? color("--faint") : color("--accent"),
              borderRadius: [0, 4, 4, 0],
            },
          })),
        },
      ],
    };
  }, [parts]);
  if (parts.length === 0) return null;
  return (
    <Card title="Where the time goes">
      <Chart
        make={make}
        height={60 + 28 * parts.length}
        label={parts.map((one) => `${one.name} ${timeText(one.ns)}`).join(", ")}
      />
      <p className="hint">
        Predicted by the virtual GPU. Grey parts run beside longer ones and cost nothing of their own.
      </p>
    </Card>
  );
}

function RoofChart({ roof, flops, bytes, ns }: { roof: Roof; flops: number; bytes: number; ns: number }) {
  const make = useCallback(() => {
    const quiet = color("--quiet");
    const intensity = flops / bytes;
    const ridge = roof.flops / roof.bytes;
    const from = Math.min(intensity, ridge) / 8;
    const to = Math.max(intensity, ridge) * 8;
    const reached = (1e9 * flops) / ns;
    const limit = Math.min(roof.flops, intensity * roof.bytes);
    const axis = {
      type: "log",
      nameLocation: "middle",
      nameTextStyle: { color: quiet },
      splitLine: { lineStyle: { color: color("--line") } },
    };
    const flopText = (value: number) => `${(value / 1e12).toPrecision(2)} TFLOP/s`;
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      grid: { left: 104, right: 20, top: 16, bottom: 56 },
      tooltip: {
        ...tooltip(),
        formatter: ({ value }: { value: [number, number] }) =>
          `${value[0].toPrecision(3)} FLOP/byte\n${flopText(value[1])}`,
      },
      xAxis: {
        ...axis,
        name: "FLOP per byte of DRAM",
        nameGap: 32,
        min: from,
        max: to,
        axisLabel: {
          color: quiet,
          hideOverlap: true,
          formatter: (value: number) => String(Number(value.toPrecision(1))),
        },
      },
      yAxis: {
        ...axis,
        min: Math.min(reached, from * roof.bytes) / 2,
        max: roof.flops * 2,
        axisLabel: { color: quiet, hideOverlap: true, formatter: flopText },
      },
      series: [
        {
          type: "line",
          symbol: "none",
          lineStyle: { color: color("--accent"), width: 2 },
          data: [
            [from, from * roof.bytes],
            [ridge, roof.flops],
            [to, roof.flops],
          ],
        },
        {
          type: "line",
          symbol: "none",
          lineStyle: { color: color("--faint"), type: "dashed" },
          data: [
            [intensity, reached],
            [intensity, limit],
          ],
        },
        {
          type: "scatter",
          symbolSize: 13,
          itemStyle: { color: color("--bad") },
          data: [[intensity, reached]],
        },
      ],
    };
  }, [roof, flops, bytes, ns]);
  const limit = Math.min(roof.flops, (flops / bytes) * roof.bytes);
  const share = Math.round((100 * 1e9 * flops) / ns / limit);
  return (
    <>
      <Chart make={make} height={320} label={`Roofline: the kernel reaches ${share} % of the roof`} />
      <p className="hint">
        The line: what DRAM and the FP32 units of the CUDA cores allow. The point: this kernel, at{" "}
        {share} % of the roof above it. FLOP and bytes are counted on the virtual GPU.
      </p>
    </>
  );
}

/** Of a kernel that computes nothing in floating point: how fast it moves its bytes. */
function Traffic({ roof, bytes, ns }: { roof: Roof; bytes: number; ns: number }) {
  const rate = (1e9 * bytes) / ns;
  const gigabytes = (value: number) => `${(value / 1e9).toPrecision(3)} GB/s`;
  return (
    <>
      <p>
        <meter max={roof.bytes} value={rate} aria-label="share of the DRAM bandwidth" />{" "}
        {gigabytes(rate)} of {gigabytes(roof.bytes)}, {Math.round((100 * rate) / roof.bytes)} %
      </p>
      <p className="hint">
        The kernel does no floating-point work. Bytes of DRAM are counted on the virtual GPU.
      </p>
    </>
  );
}

function Roofline({ run, trial }: Shown) {
  const roof = roofOf(run.summary?.profile);
  const flops = numberOf(trial.estimate?.flops);
  const bytes = numberOf(trial.estimate?.dram_bytes);
  const ns = timeOf(trial);
  if (!roof || !bytes || !ns) return null;
  return (
    <Card title={flops ? "Roofline" : "Memory bandwidth"}>
      {flops ? (
        <RoofChart roof={roof} flops={flops} bytes={bytes} ns={ns} />
      ) : (
        <Traffic roof={roof} bytes={bytes} ns={ns} />
      )}
    </Card>
  );
}

function Source({ run, trial }: Shown) {
  const given = run.spec?.oracle?.kernel?.source?.text ?? "";
  const own = trial.kernel?.source?.text ?? "";
  const lines = useMemo(
    () => (own && given ? diffLines(given, own) : []),
    [given, own],
  );
  if (!given && !own) return null;
  if (lines.length === 0)
    return (
      <Card title={own ? "Source" : "Source as given"}>
        <pre className="source" tabIndex={0}>
          {own || given}
        </pre>
        {!own && (
          <p className="hint">
            The candidate is this source with the configuration above; its text is in the
            artifact&rsquo;s <code>kernel.cu</code>.
          </p>
        )}
      </Card>
    );
  return (
    <Card title="Source, compared with the kernel as given">
      <pre className="source diff" tabIndex={0}>
        {lines.map((line, i) => (
          <span key={i} className={line.kind}>
            {{ same: "  ", old: "- ", new: "+ " }[line.kind]}
            {line.text}
            {"\n"}
          </span>
        ))}
      </pre>
    </Card>
  );
}

/** One candidate of a run, with all that is known of it. */
export default function Candidate({ id, number }: { id: string; number: number }) {
  const place = `/runs/${encodeURIComponent(id)}`;
  const { data: run, error, reload } = useGet<Run>(place);
  const trial = useGet<Trial>(`${place}/trials/${number}`);
  const failure = error ?? trial.error;
  if (failure) return <Failure error={failure} retry={error ? reload : trial.reload} />;
  if (!run || !trial.data) return <Loading what={`trial ${number}`} />;
  const shown = { run, trial: trial.data };
  const neighbour = (at: number, text: string) =>
    at >= 1 && at <= run.trials ? (
      <a className="button" href={routeText(["runs", id, "trials", String(at)])}>
        {text}
      </a>
    ) : null;
  return (
    <>
      <div className="title">
        <h1>
          Trial {number} <Tag text={trial.data.verdict.kind} />
        </h1>
        <div className="tools">
          {neighbour(number - 1, "Previous")}
          {neighbour(number + 1, "Next")}
          <a className="button" href={routeText(["runs", id], { trial: String(number) })}>
            All trials
          </a>
        </div>
      </div>
      <p className="hint">
        of {run.task || run.id} on {run.device}.{" "}
        {trial.data.verdict.reason || "Every check passed."} {trial.data.note}
      </p>
      <Figures {...shown} />
      <div className="pair">
        <Parts trial={trial.data} />
        <Roofline {...shown} />
      </div>
      <Configuration {...shown} />
      <Card title="Counters and resources">
        <Facts title="Measured" facts={trial.data.measurement} />
        <Facts title="Predicted and counted" facts={trial.data.estimate} />
        {trial.data.resources?.map((one, i) => (
          <Facts
            key={i}
            title={String(one.entry ?? "kernel")}
            facts={{ ...one, entry: null, mangled: null }}
          />
        ))}
      </Card>
      {(trial.data.verdict.checks?.length ?? 0) > 0 && (
        <Card title="Verdict">
          <Checks trial={trial.data} />
        </Card>
      )}
      <Source {...shown} />
    </>
  );
}
