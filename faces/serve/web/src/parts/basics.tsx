import type { ReactNode } from "react";
import type { ApiError } from "../api/client";
import type { Evidence } from "../api/types";

export function Loading({ what }: { what: string }) {
  return (
    <p className="state" role="status">
      <span className="spinner" aria-hidden="true" />
      Loading {what}…
    </p>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className="state empty">{children}</div>;
}

export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div className="state failure" role="alert">
      <p>
        {error.status === 0
          ? "The server does not answer. It may be starting or stopped."
          : error.message}
      </p>
      {error.problem.errors?.map((one) => (
        <p key={one.field}>
          <code>{one.field}</code>: {one.detail}
          {one.hint ? ` – ${one.hint}` : ""}
        </p>
      ))}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

const tones: Record<string, string> = {
  succeeded: "good",
  finished: "good",
  correct: "good",
  running: "live",
  queued: "quiet",
  cancelled: "quiet",
  cancelling: "warn",
  stopped: "quiet",
  interrupted: "warn",
  sampled: "good",
  unchecked: "warn",
};

export function Tag({ text }: { text: string }) {
  return <span className={`tag ${tones[text] ?? "bad"}`}>{text}</span>;
}

/** Whether times were measured on a GPU or predicted by the virtual one. */
export function EvidenceTag({ evidence }: { evidence: Evidence | null }) {
  if (!evidence) return null;
  const meaning =
    evidence === "measured" ? "timed on the GPU itself" : "by the virtual GPU's time model";
  return (
    <span className={`tag ${evidence}`} title={meaning}>
      {evidence}
    </span>
  );
}

export function Figure({
  label,
  value,
  detail,
}: {
  label: string;
  value: ReactNode;
  detail?: ReactNode;
}) {
  return (
    <div className="figure">
      <dt>{label}</dt>
      <dd>
        {value}
        {detail && <small>{detail}</small>}
      </dd>
    </div>
  );
}

export function Card({
  title,
  tools,
  children,
}: {
  title: string;
  tools?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {tools && <div className="tools">{tools}</div>}
      </header>
      {children}
    </section>
  );
}
