import { useEvents, useGet } from "../api/hooks";
import type { Job, JobState } from "../api/types";
import { agoText, speedupText, timeText } from "../lib/format";
import { replaceQuery, routeText, type Route } from "../lib/route";
import { Empty, EvidenceTag, Failure, Loading, Tag } from "../parts/basics";

const states: JobState[] = ["queued", "running", "succeeded", "failed", "cancelled"];
const pageSize = 50;

function Progress({ job }: { job: Job }) {
  const { trials, seconds, used_trials, used_seconds } = job.budget;
  const share = trials ? used_trials / trials : seconds ? used_seconds / seconds : 0;
  if (job.state === "queued") return <>–</>;
  return (
    <span className="progress">
      <progress
        max={1}
        value={job.state === "succeeded" ? 1 : Math.min(1, share)}
        aria-label="budget used"
      />
      {used_trials}
      {trials ? ` / ${trials}` : ""}
    </span>
  );
}

function Row({ job }: { job: Job }) {
  return (
    <tr>
      <td data-label="job">
        <a href={routeText(["jobs", job.id])}>{job.name}</a>
        <small>{agoText(job.created)}</small>
      </td>
      <td data-label="state">
        <Tag text={job.cancel_requested && job.state === "running" ? "cancelling" : job.state} />
      </td>
      <td data-label="GPU">
        {job.device ?? job.request.target_gpu ?? "auto"} <EvidenceTag evidence={job.evidence} />
      </td>
      <td data-label="trials">
        <Progress job={job} />
      </td>
      <td data-label="best" className="right">
        {timeText(job.best?.time_ns)}
      </td>
      <td data-label="speed-up" className="right strong">
        {speedupText(job.speedup)}
      </td>
    </tr>
  );
}

export function Jobs({ route }: { route: Route }) {
  const state = route.query.get("state") ?? "";
  const offset = Number(route.query.get("offset") ?? 0);
  const path = `/jobs?limit=${pageSize}&offset=${offset}${state ? `&state=${state}` : ""}`;
  const { data, error, reload } = useGet<{ jobs: Job[]; total: number }>(path, 15);
  useEvents("/events", ["state"], reload);
  return (
    <>
      <div className="title">
        <h1>Jobs</h1>
        <a className="button primary" href="#/submit">
          Submit a job
        </a>
      </div>
      <nav className="tabs" aria-label="state of jobs">
        {["", ...states].map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={state === one}
            onClick={() => replaceQuery(route, { state: one, offset: null })}
          >
            {one || "all"}
          </button>
        ))}
      </nav>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading what="jobs" />}
      {data?.jobs.length === 0 && (
        <Empty>
          <p>{state ? `No job is ${state}.` : "No job yet."}</p>
          <p>
            Submit an operator or your own kernel here, or with <code>atunner submit</code>.
          </p>
        </Empty>
      )}
      {data && data.jobs.length > 0 && (
        <div className="card flush">
          <table className="stack">
            <thead>
              <tr>
                <th>job</th>
                <th>state</th>
                <th>GPU</th>
                <th>trials</th>
                <th className="right">best</th>
                <th className="right">speed-up</th>
              </tr>
            </thead>
            <tbody>
              {data.jobs.map((job) => (
                <Row key={job.id} job={job} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data && data.total > pageSize && (
        <p className="tools">
          <button
            type="button"
            disabled={offset === 0}
            onClick={() => replaceQuery(route, { offset: String(Math.max(0, offset - pageSize)) })}
          >
            Newer
          </button>
          {offset + 1}–{Math.min(offset + pageSize, data.total)} of {data.total}
          <button
            type="button"
            disabled={offset + pageSize >= data.total}
            onClick={() => replaceQuery(route, { offset: String(offset + pageSize) })}
          >
            Older
          </button>
        </p>
      )}
    </>
  );
}
