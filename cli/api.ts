import { randomUUID } from 'node:crypto'
import { Command } from 'commander'
import { isObject } from '../catalog/values.ts'
import { runOneCommand } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import { APPROVAL_EXIT_CODE, isCliError, usageError } from './error.ts'
import { withInterruption } from './interruption.ts'
import type { Io } from './io.ts'
import { readManifest } from './manifest.ts'
import { formatAskedHint, getResponseExitCode } from './output.ts'
import { parseResponse, requestHeaders, unreachableError } from './remote.ts'
import { type HttpResponse, readBytes, sendRequest } from './transport.ts'
import { createArgumentReader, parseObjectArgument } from './values.ts'

type ApiFlags = {
  readonly field?: string[]
  readonly input?: string
  readonly include?: boolean
  readonly dryRun?: boolean
  readonly confirm?: string
  readonly reason?: string
  readonly idempotencyKey?: string
  readonly url?: string
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const TIMEOUT_MS = 120_000

const append = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value]

/** A value as JSON where it is a number, true, false, null, a list or an object; else the text itself. */
const parseValue = (text: string): unknown => {
  if (!/^(?:-?\d+(?:\.\d+)?|true|false|null|\[[^]*\]|\{[^]*\})$/.test(text)) return text
  try {
    const value: unknown = JSON.parse(text)
    // Ids and phones may have more digits than a number keeps.
    return typeof value === 'number' && String(value) !== text ? text : value
  } catch {
    return text
  }
}

/** Parses `field=value`; `field:=text` is a text whatever it looks like. */
const parseField = async (
  pair: string,
  read: ReturnType<typeof createArgumentReader>,
): Promise<[string, unknown]> => {
  const [, name, colon, text] = /^([\w.-]+?)(:?)=([^]*)$/.exec(pair) ?? []
  if (name === undefined)
    throw usageError('--field must be field=value.', '--field', 'For example -f limit=5, or -f name:=007.')
  if (colon === ':') return [name, text]
  const value = await read(text!, '--field')
  return [name, parseValue(value)]
}

/** Returns the URL of a path on the server: the key must not be sent to any other. */
const toUrl = (base: string, path: string): URL => {
  const url = /^[a-z][a-z+.-]*:/i.test(path) ? undefined : URL.parse(`${base}/${path.replace(/^\/+/, '')}`)
  if (url && url.origin === new URL(base).origin) return url
  throw usageError(
    'The path must be one of the server, such as /v1/contacts.',
    '<path>',
    'Leave out the host.',
  )
}

const buildRequest = async (io: Io, method: string, url: URL, flags: ApiFlags) => {
  const read = createArgumentReader(io)
  const input =
    flags.input === undefined
      ? {}
      : await parseObjectArgument(
          flags.input === '-' || /^[{@]/.test(flags.input) ? flags.input : `@${flags.input}`,
          '--input',
          read,
        )
  for (const pair of flags.field ?? []) {
    const [name, value] = await parseField(pair, read)
    input[name] = value
  }
  const writes = method !== 'GET'
  const inQuery = !writes || method === 'DELETE'
  if (flags.dryRun && !writes) throw usageError('A GET changes nothing: it has no dry run.', '--dry-run')
  if (inQuery)
    for (const [name, value] of Object.entries(input))
      for (const item of [value].flat())
        url.searchParams.append(name, typeof item === 'object' ? JSON.stringify(item) : String(item))
  if (flags.dryRun) url.searchParams.set('dry_run', 'true')
  return { url, writes, body: inQuery ? undefined : JSON.stringify(input) }
}

const formatHead = (response: HttpResponse): string =>
  `HTTP ${response.status} ${response.statusText}\n` +
  [...response.headers].map(([name, value]) => `${name}: ${value}\n`).join('') +
  '\n'

const callApi = async (io: Io, given: string, path: string, flags: ApiFlags): Promise<number> => {
  const method = given.toUpperCase()
  if (!METHODS.includes(method))
    throw usageError(
      `<method> must be one of ${METHODS.join(', ')}.`,
      '<method>',
      'For example: wcrm api GET /v1/me',
    )
  const { version } = readManifest()
  const { url: base, key } = await loadCredentials(io.env, flags.url, (text) => io.stderr.write(text))
  const { url, writes, body } = await buildRequest(io, method, toUrl(base, path), flags)
  const idempotencyKey = writes ? (flags.idempotencyKey ?? randomUUID()) : undefined
  const send = async (given?: AbortSignal): Promise<HttpResponse> => {
    const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ...(given ? [given] : [])])
    const response = await sendRequest(io, url.href, {
      method,
      headers: {
        ...requestHeaders({ key, version, apiVersion: io.env['WCRM_API_VERSION'] || null }),
        Accept: 'application/json, */*;q=0.5',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
        ...(flags.confirm === undefined ? {} : { 'Api-Confirm': flags.confirm }),
        ...(flags.reason === undefined ? {} : { 'Api-Reason': encodeURIComponent(flags.reason) }),
      },
      ...(body === undefined ? {} : { body }),
      redirect: 'manual',
      signal,
    })
    return writes ? response : await followRedirection(io, url, response, signal)
  }
  let response: HttpResponse
  try {
    response = await (idempotencyKey === undefined ? send() : withInterruption(idempotencyKey, send))
  } catch (error) {
    throw isCliError(error) ? error : unreachableError(base, error, idempotencyKey)
  }
  if (flags.include) (response.ok ? io.stdout : io.stderr).write(formatHead(response))
  if (!response.ok) await parseResponse(response, base, idempotencyKey)
  const bytes = await readBytes(response)
  io.stdout.write(bytes)
  if (io.stdout.isTTY && bytes.length > 0 && bytes.at(-1) !== 10) io.stdout.write('\n')
  return getExitCode(io, response, bytes)
}

/**
 * Follows a redirection to a file in its store, whose address needs no key. One to the same path is that of a proxy to
 * another host or scheme: with the key it must not be followed, and without it it is useless.
 */
const followRedirection = async (
  io: Io,
  url: URL,
  response: HttpResponse,
  signal: AbortSignal,
): Promise<HttpResponse> => {
  const location = response.headers.get('location')
  const target = location === null ? null : URL.parse(location, url)
  if (response.status < 300 || response.status >= 400 || target === null) return response
  await readBytes(response)
  if (target.pathname !== url.pathname)
    return await sendRequest(io, target.href, { redirect: 'follow', signal })
  throw usageError(
    `${url.origin} redirects to ${target.origin}, where the key is not sent.`,
    '--url',
    `Use that address: --url ${target.origin}, or log in to it.`,
  )
}

/** Returns the exit code of the same call as a command of its own. */
const getExitCode = (io: Io, response: HttpResponse, bytes: Uint8Array): number => {
  const approval = response.headers.get('approval-id')
  if (approval !== null) {
    io.stderr.write(formatAskedHint(approval))
    return APPROVAL_EXIT_CODE
  }
  if (!response.headers.get('content-type')?.startsWith('application/json')) return 0
  const value: unknown = JSON.parse(Buffer.from(bytes).toString())
  return isObject(value) ? getResponseExitCode(value) : 0
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io, exit: (code: number) => void): Command =>
  new Command('wcrm api')
    .description(
      'Call the REST API with the key in use and print the body of the answer. Exit codes are those of all ' +
        'commands. Every change has an idempotency key.',
    )
    .argument('<method>', METHODS.join(', '))
    .argument('<path>', 'a path of the server, such as /v1/contacts')
    .option(
      '-f, --field <field=value>',
      'a field of the body (of the query for GET and DELETE): JSON, @file or text; field:=text is always ' +
        'text',
      append,
    )
    .option('--input <file>', 'the body: a file, JSON, or - for standard input; --field overrides it')
    .option('-i, --include', 'print status and headers before the body')
    .option('--dry-run', 'run every check, but change nothing')
    .option('--confirm <verb>', 'confirms a call that needs it')
    .option('--reason <text>', "the reason, shown to the person who approves an AI agent's call")
    .option('--idempotency-key <key>', 'a call with the same key never runs twice (default: a new key)')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print a problem as JSON')
    .action(async (method: string, path: string, flags: ApiFlags) =>
      exit(await callApi(io, method, path, flags)),
    )

/** `wcrm api METHOD PATH`: one call of the REST API, with the stored key. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
