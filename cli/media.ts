import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
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
import { type HttpResponse, sendRequest } from './transport.ts'
import { nameFile } from './unnamed-file.ts'
import { naming } from './write-error.ts'

type Answered = Awaited<ReturnType<typeof callOperation>>
type Bytes = { readonly stream: AsyncIterable<Uint8Array>; readonly from: string }

const request = async (
  io: Io,
  url: string,
  headers: Record<string, string>,
  redirect: 'manual' | 'follow',
): Promise<HttpResponse> => {
  try {
    return await sendRequest(io, url, { headers, redirect })
  } catch (error) {
    throw unreachableError(new URL(url).origin, error, undefined)
  }
}

/** Requests the bytes. Where they are on another server, the key is not sent there. */
const requestBytes = async (to: ServerConnection, messageId: string): Promise<Bytes> => {
  const { io } = to
  const url = `${to.url}/v1/messages/${encodeURIComponent(messageId)}/media`
  const answer = await request(io, url, { ...requestHeaders(to), Accept: '*/*' }, 'manual')
  const location = answer.headers.get('location')
  if (location !== null) await answer.text()
  const from = location === null ? url : new URL(location, url).href
  const response =
    location === null ? answer : await request(io, from, { 'User-Agent': `wcrm-cli/${to.version}` }, 'follow')
  if (!response.ok) await parseResponse(response, new URL(from).origin)
  if (response.body) return { stream: response.body, from: new URL(from).origin }
  throw cliError(1, {
    type: 'about:blank',
    title: 'Unexpected response',
    code: 'unexpected',
    detail: 'The response has no bytes.',
  })
}

/**
 * Copies the bytes; a connection that ends early is reported as one that failed. They are written to a file without a
 * write stream: one that fails keeps the file open, and closing it would wait for that.
 */
const copyBytes = async (
  { stream, from }: Bytes,
  target: FileHandle | NodeJS.WritableStream,
): Promise<void> => {
  try {
    if ('writeFile' in target) await target.writeFile(stream)
    else await pipeline(stream, target, { end: false })
  } catch (error) {
    throw (error as { syscall?: string }).syscall ? error : unreachableError(from, error, undefined)
  }
}

/** Requests the file of an export from the URL in its answer: at the server in use, whatever its public name. */
const requestExport = async (to: ServerConnection, shown: Answered): Promise<Bytes> => {
  const { io } = to
  const url = shown.value['url']
  if (typeof url !== 'string')
    throw cliError(5, {
      type: 'about:blank',
      title: 'No file',
      code: 'conflict',
      detail: `The export is ${String(shown.value['state'])}: there is no file to save.`,
    })
  const from = `${to.url}/exports/${url.slice(url.lastIndexOf('/') + 1)}`
  const response = await request(io, from, { 'User-Agent': `wcrm-cli/${to.version}` }, 'manual')
  if (!response.ok) await parseResponse(response, to.url)
  return { stream: checkDigest(response.body!, String(shown.value['sha256'])), from: to.url }
}

/** Passes bytes on; throws when they are not those of the digest. */
async function* checkDigest(stream: AsyncIterable<Uint8Array>, sha256: string): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const chunk of stream) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('hex') !== sha256) throw new Error('the file is not the one that was made')
}

/**
 * Saves the file of a message or of an export. Its bytes go to a file without a name, which is given the name once it
 * is complete and replaces what has it; nothing is left behind, however the command ends. `-` writes to standard
 * output. Returns the answer of the operation, which describes the file.
 */
export const saveFile = async (
  to: ServerConnection,
  { operation, input }: { operation: string; input: Readonly<Record<string, unknown>> },
  output: string,
): Promise<Answered> => {
  const { io } = to
  if (output === '-' && io.stdout.isTTY)
    throw usageError(
      '--output - would write the bytes to the terminal.',
      '--output',
      'Name a file, or pipe the output into a program.',
    )
  const spool = output === '-' ? undefined : await openSpool(outputFolder(output))
  try {
    const answer = await callOperation(to, operation, input)
    const bytes =
      operation === 'crm_get_export'
        ? await requestExport(to, answer)
        : await requestBytes(to, String(input['message_id']))
    if (spool) await naming(output, copyBytes(bytes, spool))
    else await copyBytes(bytes, io.stdout)
    if (spool) await naming(output, nameFile(spool, output))
    return answer
  } finally {
    await spool?.close()
  }
}
