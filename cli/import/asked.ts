import type { Io } from '../io.ts'
import { type ApiResponse, type CallHeaders, callOperation, type ServerConnection } from '../remote.ts'

/** A person decides on a call of the import. */
type AskedError = Error & { readonly asked: ApiResponse }

export const isAskedError = (error: unknown): error is AskedError =>
  error instanceof Error && 'asked' in error

/** Returns the answer of a call. Throws where a person decides on it, because nothing was done yet. */
export const callUnlessAsked = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
  headers: CallHeaders,
): Promise<Record<string, unknown>> => {
  const asked = await callOperation(io, to, operation, input, headers)
  if (asked.approvalId !== undefined) throw Object.assign(new Error('A person decides.'), { asked })
  return asked.value
}
