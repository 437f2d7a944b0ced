import { pipeline } from 'node:stream/promises'
import { cliError, usageError } from './error.ts'
import { openSpool, outputFolder } from './export.ts'
import type { Io } from './io.ts'
import {
  callOperation,
  parseResponse,
  requestHeaders,
  type ServerConnection,
  unreachableError,
} from './remote.ts'
import { nameFile } from './unnamed-file.ts'

/** Requests the bytes. They may come from elsewhere, after a redirect, where the key is not sent. */
const requestBytes = async (io: Io, to: ServerConnection, messageId: string): Promise<ReadableStream> => {
  const url = `${to.url}/v1/messages/${encodeURIComponent(messageId)}/media`
  let response: Response
  try {
    response = await (io.fetch ?? fetch)(url, { headers: { ...requestHeaders(to), Accept: '*/*' } })
  } catch (error) {
    throw unreachableError(to.url, error, undefined)
  }
  if (!response.ok) await parseResponse(response)
  if (response.body) return response.body
  throw cliError(1, {
    type: 'about:blank',
    title: 'Unexpected response',
    code: 'unexpected',
    detail: 'The response has no bytes.',
  })
}

/** Copies the bytes; a connection that ends before they are all there is told as one that failed. */
const copyBytes = async (
  to: ServerConnection,
  bytes: ReadableStream,
  target: NodeJS.WritableStream,
): Promise<void> => {
  try {
    await pipeline(bytes, target, { end: false })
  } catch (error) {
    throw (error as { syscall?: string }).syscall ? error : unreachableError(to.url, error, undefined)
  }
}

/**
 * Saves the file of a message. Its bytes go to a file without a name, which is given the name once it is complete and
 * replaces what has it; nothing is left behind, however the command ends. `-` writes to standard output. Returns the
 * answer of the operation, which describes the file.
 */
export const saveMedia = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
  output: string,
): Promise<Awaited<ReturnType<typeof callOperation>>> => {
  if (output === '-' && io.stdout.isTTY)
    throw usageError(
      '--output - would write the bytes to the terminal.',
      '--output',
      'Name a file, or pipe the output into a program.',
    )
  const spool = output === '-' ? undefined : await openSpool(outputFolder(output))
  try {
    const answer = await callOperation(io, to, operation, input)
    const bytes = await requestBytes(io, to, String(input['message_id']))
    if (spool) await copyBytes(to, bytes, spool.createWriteStream({ autoClose: false }))
    else await copyBytes(to, bytes, io.stdout)
    if (spool) await nameFile(spool, output)
    return answer
  } finally {
    await spool?.close()
  }
}
