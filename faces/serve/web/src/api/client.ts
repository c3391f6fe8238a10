import type { Problem } from "./types";

/** An answer of the server that is no success, or no answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.detail ?? problem.title ?? `the server answered ${status}`);
  }
}

async function problemOf(response: Response): Promise<Partial<Problem>> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return { title: response.statusText, status: response.status };
  }
}

export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, { detail: "the server does not answer" });
  }
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, { signal })).json() as Promise<T>;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const json = {
    "Content-Type": "application/json",
    "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()),
  };
  const response = await request(path, {
    method,
    headers: body === undefined ? {} : json,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return (response.status === 204 ? undefined : response.json()) as Promise<T>;
}

export async function upload(file: File): Promise<{ id: string }> {
  const response = await request(`/uploads?name=${encodeURIComponent(file.name)}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
  return response.json() as Promise<{ id: string }>;
}
