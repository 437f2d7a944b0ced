import { type ApiResponse, type CallHeaders, callOperation, type ServerConnection } from '../remote.ts'

/** A person decides on a call of the import. */
type AskedError = Error & { readonly asked: ApiResponse }

export const isAskedError = (error: unknown): error is AskedError =>
  error instanceof Error && 'asked' in error

/** Returns the answer of a call. Throws where a person decides on it, because nothing was done yet. */
export const callUnlessAsked = async (
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
  headers: CallHeaders,
): Promise<Record<string, unknown>> => {
  const asked = await callOperation(to, operation, input, headers)
  if (asked.approvalId !== undefined) throw Object.assign(new Error('A person decides.'), { asked })
  return asked.value
}
