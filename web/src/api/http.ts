/* Requests to the API, typed by the OpenAPI document, such as
 * call("GET /v1/sweeps/{sweep}", {path: {sweep}}).
 *
 * An error is thrown as a Failure with the text of the problem document. A 401 also signs out. */
import { released } from "../live/press";
import { signOut, token } from "../session";
import type { Operations, Problem } from "./types";

type Key = keyof Operations;
type Part<K extends Key, Name extends "path" | "query" | "body"> =
  Operations[K][Name] extends undefined ? { [N in Name]?: undefined } : Name extends "query" ? { query?: Operations[K]["query"] } : { [N in Name]: Operations[K][N] };
export type Input<K extends Key> = Part<K, "path"> & Part<K, "query"> & Part<K, "body"> & { signal?: AbortSignal };

export class Failure extends Error {
  /** HTTP status; 0 when the server was not reached. */
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** The text to show for anything that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export function authorization(): Record<string, string> {
  return token.value === null ? {} : { Authorization: `Bearer ${token.value}` };
}

function address(template: string, path: Record<string, unknown>, query: Record<string, unknown>): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
  const pairs = Object.entries(query).filter(([, v]) => v !== undefined && v !== null);
  return pairs.length === 0 ? filled : `${filled}?${new URLSearchParams(pairs.map(([k, v]) => [k, String(v)]))}`;
}

/** The Failure for an answer other than 2xx. A 401 signs out, unless the token has changed since
 * the request was sent with the token `asked`. */
export async function failureOf(response: Response, asked: string | null): Promise<Failure> {
  let problem: Partial<Problem> = {};
  try {
    problem = (await response.json()) as Partial<Problem>;
  } catch {
    // Not a problem document: a proxy between this page and the server answered.
  }
  const detail = problem.detail ?? problem.title ?? `The server answered ${response.status}`;
  const fields = (problem.errors ?? []).filter((e) => !detail.includes(e.detail)).map((e) => (e.detail.startsWith(e.pointer) ? e.detail : `${e.pointer}: ${e.detail}`));
  const text = [detail, ...fields].join("; ");
  if (response.status === 401 && token.value === asked) signOut(text);
  return new Failure(response.status, problem.code ?? "", text);
}

export async function send(url: string, init: RequestInit): Promise<Response> {
  const asked = token.value;
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers: { ...authorization(), ...(init.headers as Record<string, string> | undefined) }, cache: "no-store" });
  } catch (error) {
    if (isAbort(error)) throw error;
    await released();
    throw new Failure(0, "unreachable", "The server cannot be reached");
  }
  await released();
  if (!response.ok) throw await failureOf(response, asked);
  return response;
}

/** The answer comes when nothing is pressed (live/press.ts). */
export async function call<K extends Key>(key: K, input: Input<K>): Promise<Operations[K]["result"]> {
  const [method = "GET", template = "/"] = key.split(" ");
  const init: RequestInit = { method };
  if (input.signal) init.signal = input.signal;
  if (input.body !== undefined) {
    init.body = JSON.stringify(input.body);
    init.headers = { "Content-Type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
  }
  const response = await send(address(template, input.path ?? {}, input.query ?? {}), init);
  const result = (response.status === 204 ? undefined : await response.json()) as Operations[K]["result"];
  await released();
  input.signal?.throwIfAborted(); // the view may have been left by the click that was waited for
  return result;
}

/** The content of a file, whatever it says of its type. */
export async function content(sha256: string, signal?: AbortSignal): Promise<Blob> {
  return (await send(`/v1/blobs/${encodeURIComponent(sha256)}`, signal ? { signal } : {})).blob();
}

/** The first bytes of a file that has as many. A proxy that knows no ranges sends all of it. */
export async function contentBegin(sha256: string, length: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const response = await send(`/v1/blobs/${encodeURIComponent(sha256)}`, { signal, headers: { Range: `bytes=0-${length - 1}` } });
  return new Uint8Array(await response.arrayBuffer()).subarray(0, length);
}

/** Save a blob under a file name. A plain link could not send the token. */
export async function download(sha256: string, name: string): Promise<void> {
  const url = URL.createObjectURL(await content(sha256));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // by then the browser has opened it
}
