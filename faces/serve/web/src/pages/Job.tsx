import { useEffect, useMemo, useState } from "react";
import { ApiError, send } from "../api/client";
import { useEvents, useGet } from "../api/hooks";
import type { Evidence, Job as JobType, Run, TrialEvent } from "../api/types";
import { baselineNs, timeOf, type Baseline } from "../lib/baseline";
import { agoText, durationText, speedupText, timeText } from "../lib/format";
import { routeText } from "../lib/route";
import { Card, Empty, EvidenceTag, Failure, Figure, Loading, Tag } from "../parts/basics";
import { LiveChart } from "../parts/LiveChart";

const streamed = [
  "state",
  "trial",
  "note",
  "baseline",
  "finalists",
  "run_started",
  "run_stopped",
  "end",
];

/** What the events of a running job say before its record does. */
type Known = Partial<Pick<JobType, "evidence" | "device" | "baseline">>;

function knownOf(name: string, data: unknown): Known {
  if (name === "run_started") {
    const { evidence, device } = data as { evidence?: Evidence; device?: string };
    return { ...(evidence && { evidence }), ...(device && { device }) };
  }
  if (name !== "baseline") return {};
  const { baseline } = data as { baseline: Baseline };
  const ns = timeOf(baseline);
  return ns ? { baseline: { name: baseline.name, time_ns: ns } } : {};
}

/** A job and its trials, kept up to date by the event stream. */
function useLive(id: string) {
  const first = useGet<JobType>(`/jobs/${encodeURIComponent(id)}`);
  const [job, setJob] = useState<JobType | null>(null);
  const [trials, setTrials] = useState<TrialEvent[]>([]);
  const [note, setNote] = useState("");
  const [known, setKnown] = useState<Known>({});
  useEffect(() => {
    setJob(null);
    setKnown({});
    setTrials([]);
    setNote("");
  }, [id]);
  const open = useEvents(`/jobs/${encodeURIComponent(id)}/events`, streamed, (name, data) => {
    if (name === "state" || name === "end")
      setJob((old) => ({ ...(old ?? first.data), ...(data as JobType) }));
    else if (name === "trial") setTrials((old) => [...old, data as TrialEvent]);
    else if (name === "finalists") setNote("The best candidates are examined again.");
    else if (name === "run_stopped")
      setNote(`Stopped: ${(data as { reason?: string }).reason ?? ""}`);
    else setKnown((old) => ({ ...old, ...knownOf(name, data) }));
  });
  const record = job ?? first.data;
  const merged = record && {
    ...record,
    evidence: record.evidence ?? known.evidence ?? null,
    device: record.device ?? known.device ?? null,
    baseline: record.baseline ?? known.baseline ?? null,
  };
  return { job: merged, trials, note, open, error: first.error, reload: first.reload };
}

function Figures({ job, trials }: { job: JobType; trials: TrialEvent[] }) {
  const last = trials.at(-1);
  const best = last?.best_ns ?? job.best?.time_ns;
  const used = last?.trials_done ?? job.budget.used_trials;
  const seconds = Math.max(last?.seconds ?? 0, job.budget.used_seconds);
  const ended = job.state !== "running" && job.state !== "queued";
  const speedup = ended || !job.baseline || !best ? job.speedup : job.baseline.time_ns / best;
  return (
    <dl className="figures" aria-live="polite">
      <Figure
        label="best so far"
        value={timeText(ended ? job.best?.time_ns : best)}
        detail={best && <EvidenceTag evidence={job.evidence} />}
      />
      <Figure
        label="speed-up"
        value={speedupText(speedup)}
        detail={job.baseline && `over ${job.baseline.name}, ${timeText(job.baseline.time_ns)}`}
      />
      <Figure
        label="trials"
        value={`${used}${job.budget.trials ? ` / ${job.budget.trials}` : ""}`}
        detail={seconds > 0 && used > 0 ? `${((60 * used) / seconds).toFixed(0)} a minute` : ""}
      />
      <Figure
        label="time spent"
        value={durationText(seconds)}
        detail={job.worker && `on ${job.worker}`}
      />
    </dl>
  );
}

function Recent({ trials, run }: { trials: TrialEvent[]; run: string | undefined }) {
  const newest = trials.slice(-8).reverse();
  return (
    <table className="stack">
      <thead>
        <tr>
          <th className="right">#</th>
          <th className="right">time</th>
          <th>verdict</th>
          <th>configuration</th>
        </tr>
      </thead>
      <tbody>
        {newest.map((one) => (
          <tr key={`${one.run} ${one.number}`}>
            <td className="right" data-label="trial">
              {run ? (
                <a href={routeText(["runs", one.run ?? run], { trial: String(one.number) })}>
                  {one.number}
                </a>
              ) : (
                one.number
              )}
            </td>
            <td className="right" data-label="time">
              {timeText(one.time_ns)}
            </td>
            <td data-label="verdict">
              <Tag text={one.verdict} />
            </td>
            <td data-label="configuration">
              <code>{one.configuration}</code>
              {one.reason && <small>{one.reason}</small>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function RunRow({ id }: { id: string }) {
  const { data: run } = useGet<Run>(`/runs/${encodeURIComponent(id)}`);
  const baseline = run ? baselineNs(run) : null;
  const best = run?.best_ns ?? null;
  return (
    <tr>
      <td data-label="run">
        <a href={routeText(["runs", id])}>{run?.task || id}</a>
      </td>
      <td className="right" data-label="trials">
        {run?.trials ?? "–"}
      </td>
      <td className="right" data-label="baseline">
        {timeText(baseline?.ns)}
        <small>{baseline?.name}</small>
      </td>
      <td className="right" data-label="best">
        {timeText(best)}
      </td>
      <td className="right strong" data-label="speed-up">
        {speedupText(baseline && best ? baseline.ns / best : null)}
      </td>
    </tr>
  );
}

/** The runs of the parts that a graph was divided into, and that of the whole. */
function RunsOf({ job }: { job: JobType }) {
  if (job.runs.length < 2) return null;
  return (
    <Card title="Runs of this job">
      <table className="stack">
        <thead>
          <tr>
            <th>run</th>
            <th className="right">trials</th>
            <th className="right">baseline</th>
            <th className="right">best</th>
            <th className="right">speed-up</th>
          </tr>
        </thead>
        <tbody>
          {job.runs.map((id) => (
            <RunRow key={id} id={id} />
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Files({ job }: { job: JobType }) {
  const { data } = useGet<{ files: { path: string; bytes: number }[] }>(
    job.artifact ? `/jobs/${encodeURIComponent(job.id)}/artifacts` : null,
  );
  if (!job.artifact) return null;
  const base = `/api/v1/jobs/${encodeURIComponent(job.id)}`;
  return (
    <Card
      title="Artifact"
      tools={
        <a className="button" href={`${base}/artifacts.tar`} download>
          Download all
        </a>
      }
    >
      <ul className="files">
        {data?.files.map((file) => (
          <li key={file.path}>
            <a
              href={`${base}/artifacts/${file.path.split("/").map(encodeURIComponent).join("/")}`}
              download
            >
              {file.path}
            </a>{" "}
            <small>{Math.ceil(file.bytes / 1024)} kB</small>
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function Job({ id }: { id: string }) {
  const { job, trials, note, open, error, reload } = useLive(id);
  const [refused, setRefused] = useState<ApiError | null>(null);
  const [asked, setAsked] = useState(false);
  const points = useMemo(
    () => trials.map((one, i) => ({ trial: i + 1, time_ns: one.time_ns, best_ns: one.best_ns })),
    [trials],
  );
  if (error && !job) return <Failure error={error} retry={reload} />;
  if (!job) return <Loading what="the job" />;
  const ended = job.state !== "running" && job.state !== "queued";
  const cancel = async () => {
    setAsked(true);
    try {
      await send("DELETE", `/jobs/${encodeURIComponent(id)}`);
    } catch (failure) {
      setAsked(false);
      if (failure instanceof ApiError) setRefused(failure);
    }
  };
  const run = job.best?.run ?? job.runs.at(-1) ?? trials.at(-1)?.run ?? undefined;
  return (
    <>
      <div className="title">
        <h1>
          {job.name}{" "}
          <Tag text={!ended && (asked || job.cancel_requested) ? "cancelling" : job.state} />
        </h1>
        <div className="tools">
          {!ended && <span className="hint">{open ? "live" : "connecting…"}</span>}
          {run && (
            <a className="button" href={routeText(["runs", run])}>
              Trials and heatmap
            </a>
          )}
          {!ended && (
            <button type="button" className="danger" onClick={cancel} disabled={asked}>
              Cancel, keep the best
            </button>
          )}
        </div>
      </div>
      <p className="hint">
        {job.device ?? job.request.target_gpu}, submitted {agoText(job.created)}
        {job.request.shapes
          ? `, shapes ${job.request.shapes.map((s) => s.join("×")).join(" ")}`
          : ""}
        {job.request.dtype ? `, ${job.request.dtype}` : ""}
        {note ? `. ${note}` : ""}
      </p>
      {refused && <Failure error={refused} />}
      {job.error && (
        <div className="state failure" role="alert">
          <p>{job.error.detail}</p>
          {job.error.hint && <p>{job.error.hint}</p>}
        </div>
      )}
      <Figures job={job} trials={trials} />
      {trials.length > 0 ? (
        <>
          <Card title="Best so far">
            <LiveChart points={points} />
          </Card>
          {job.best && (
            <Card title="Best configuration">
              <p>
                <code>{job.best.configuration}</code>
              </p>
            </Card>
          )}
          <Card title="Newest trials">
            <Recent trials={trials} run={run} />
          </Card>
        </>
      ) : (
        !job.error && (
          <Empty>
            <p>
              {job.state === "queued"
                ? "Waiting for a worker."
                : ended
                  ? "This job made no trials."
                  : "The first kernels are compiled…"}
            </p>
          </Empty>
        )
      )}
      {ended && <RunsOf job={job} />}
      <Files job={job} />
    </>
  );
}
