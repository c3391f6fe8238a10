// The parts of faces/serve/openapi.yaml that the page uses.

export type Evidence = "predicted" | "measured";
export type JobState = "queued" | "running" | "succeeded" | "failed" | "cancelled";

export interface Problem {
  title: string;
  status: number;
  detail: string;
  errors?: { field: string; detail: string; hint?: string }[];
}

export interface Budget {
  trials?: number | null;
  seconds?: number | null;
}

export interface JobRequest {
  kind: "operator" | "source" | "graph";
  name?: string;
  operator?: string;
  shapes?: number[][];
  dtype?: string;
  upload?: string;
  kernel?: string;
  target_gpu?: string;
  budget?: Budget;
  seed?: number;
  strategy?: string;
}

export interface Job {
  id: string;
  name: string;
  state: JobState;
  cancel_requested: boolean;
  request: JobRequest;
  created: string;
  started: string | null;
  ended: string | null;
  attempts: number;
  failures: number;
  losses: number;
  worker: string | null;
  device: string | null;
  evidence: Evidence | null;
  best: { run: string | null; trial: number | null; configuration: string; time_ns: number } | null;
  baseline: { name: string; time_ns: number } | null;
  speedup: number | null;
  budget: {
    trials: number | null;
    seconds: number | null;
    used_trials: number;
    used_seconds: number;
  };
  runs: string[];
  artifact: { files: number; bytes: number } | null;
  error: { code: string; detail: string; where?: string; hint?: string } | null;
}

export interface TrialEvent {
  run: string | null;
  number: number;
  configuration: string;
  verdict: string;
  reason?: string;
  time_ns: number | null;
  best_ns: number | null;
  trials_done: number;
  seconds: number;
}

export interface RunSummary {
  id: string;
  created: string;
  status: string;
  evidence: Evidence;
  device: string;
  command: string;
  task: string;
  trials: number;
  best_ns: number | null;
  seconds: number;
}

export type Value = string | number | boolean;

export interface Parameter {
  name: string;
  values: Value[];
  meaning?: string;
}

export interface Run extends RunSummary {
  spec?: { oracle?: { kernel?: { source?: { text?: string } } | null } };
  space: { parameters: Parameter[] };
  summary: RunResult | null;
}

export interface RunResult {
  floor_ns?: number;
  space_size?: number;
  stop_reason?: string;
  best_configuration?: Record<string, Value>;
  best?: Trial | null;
  profile?: Record<string, unknown>;
  baselines?: {
    name: string;
    note?: string;
    estimate?: Timed | null;
    measurement?: Timed | null;
  }[];
}

interface Timed {
  time_ns?: number;
  median_ns?: number;
}

export interface TrialRow {
  number: number;
  proposer: string;
  verdict: string;
  reason: string;
  time_ns: number | null;
  configuration: Record<string, Value>;
  registers?: number | null;
  compile_seconds?: number;
  judge_seconds?: number;
  note?: string;
  memory_bytes?: number | null;
  energy_joules?: number | null;
}

export interface Check {
  check: string;
  family: string;
  dims: Record<string, number> | string;
  passed: boolean;
  error: number;
  bound: number;
  detail: string;
}

export interface Trial {
  number: number;
  verdict: { kind: string; reason: string; checks?: Check[] };
  estimate?: Record<string, unknown> | null;
  measurement?: Record<string, unknown> | null;
  resources?: Record<string, unknown>[];
  /** Values in the order of the run's parameters. */
  configuration?: Value[];
  /** Of a candidate that is a whole kernel. */
  kernel?: { source?: { text?: string } };
  note?: string;
}

export interface Device {
  name: string;
  full_name: string;
  cc_major: number;
  cc_minor: number;
  sms: number;
  clock_ghz?: number;
  dram_bytes?: number;
  dram_gbps?: number;
}

export interface Status {
  version: string;
  auth_required: boolean;
  scopes: string[];
  jobs: Record<string, number>;
  workers: number;
  uptime_seconds: number;
}

export interface Worker {
  name: string;
  gpus: string[];
  job: string | null;
  last_seen_seconds: number;
}
