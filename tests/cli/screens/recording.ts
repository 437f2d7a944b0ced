import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { runCommandLine } from '../../../cli/main.ts'
import { commandName, readManifest } from '../../../cli/manifest.ts'
import { doAs } from '../../calls.ts'
import { spawnOnTerminal } from '../../terminal.ts'
import { listScreens, type ScreenIds } from './commands.ts'
import { createScreenWorld, type ScreenWorld } from './world.ts'

type RecordedAnswer = { status: number; headers: Record<string, string>; body: string }
type RecordedCommand = { group: string; words: string[]; answers: RecordedAnswer[] }
export type Recording = { env: Record<string, string>; commands: RecordedCommand[] }

/** Answers are the same at every size, and for every run of the commands, because they are recorded once. */
const ADDRESS = 'https://wcrm.example.com'
const KEY = `wc_live_${'0'.repeat(40)}`

const HEADERS = ['content-type', 'workspace-time', 'workspace-time-zone', 'retry-after', 'approval-id']

/** What differs in every run. Each is replaced by another of the same width, the same for the same. */
const VOLATILE: readonly (readonly [pattern: RegExp, fill: string])[] = [
  [/(?<="next_cursor":")()[\w-]{8}\.[\w-]{20,}/g, 'c'],
  [/(?<=\\"next_cursor\\":\\")()[\w-]{8}\.[\w-]{20,}/g, 'c'],
  [/\b((?:ep|evt|dlv|plan|req)_)[0-9A-HJKMNP-TV-Z]{26}\b/g, '0'],
  [/\b(wamid\.)[\w=+/-]{20,}/g, 'A'],
  [/\b(whsec_)[\w+/*-]+=*/g, 'x'],
  [/(?<=\/media\/)()[\w.-]{20,}/g, 'x'],
  [/(?<=\/qr\/)()[0-9a-f]{32}/g, '0'],
  [/(?<=\/message\/|"code\\":\\")()[A-Z0-9]{14}\b/g, 'X'],
]

/** Times of the real clock, whatever that of the workspace is. */
const REAL_TIME = /("(?:next_attempt_at|old_secrets?_valid_until|expires_at)":\[?")20[\dT:.-]+Z/g

/** Replaces what differs in every run, all over a text. */
const createMask = () => {
  const known = new Map<string, string>()
  return (text: string): string =>
    VOLATILE.reduce(
      (masked, [pattern, fill]) =>
        masked.replaceAll(pattern, (found, start: string) => {
          if (!known.has(found)) {
            const number = String(known.size + 1)
            known.set(found, start + number.padStart(found.length - start.length, fill))
          }
          return known.get(found)!
        }),
      text,
    )
}

const env = {
  WCRM_URL: ADDRESS,
  WCRM_API_KEY: KEY,
  WCRM_KEYCHAIN: 'off',
  XDG_CONFIG_HOME: '/nonexistent',
  NO_COLOR: '1',
  TERM: 'xterm-256color',
}

/**
 * Runs a command with pipes instead of a terminal, and keeps what the server answered; of a change that is confirmed
 * the dry run that comes before the question.
 */
const recordCommand = async (
  { server, workspace }: ScreenWorld,
  words: string[],
): Promise<RecordedAnswer[]> => {
  const isAsked = isConfirmed({ words })
  const answers: RecordedAnswer[] = []
  const recorded: typeof fetch = async (url, init) => {
    const { pathname, search } = new URL(String(url))
    const sent = new Headers(init?.headers)
    if (sent.has('authorization')) sent.set('authorization', `Bearer ${workspace.owner.key}`)
    if (isAsked) sent.set('api-plan', 'show')
    const response = await fetch(`${server.url}${pathname}${search}`, { ...init, headers: sent })
    const body = await response.text()
    const headers = Object.fromEntries(
      HEADERS.flatMap((name) => (response.headers.has(name) ? [[name, response.headers.get(name)!]] : [])),
    )
    const stable = body.replaceAll(server.url, ADDRESS).replaceAll(REAL_TIME, '$12026-10-02T12:00:00.000Z')
    answers.push({ status: response.status, headers, body: stable })
    return new Response(body, { status: response.status, headers })
  }
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough().resume(), new PassThrough().resume()]
  stdin.end()
  await runCommandLine(isAsked ? [...words, '--dry-run'] : words, {
    stdin,
    stdout,
    stderr,
    env,
    fetch: recorded,
    // So that it asks for what a terminal shows.
    isPane: true,
  })
  return answers
}

/** Whether a person is asked for a confirmation. */
export const isConfirmed = ({ words }: Pick<RecordedCommand, 'words'>): boolean => {
  const spec = readManifest().commands.find((command) => commandName(command) === words.slice(0, 2).join(' '))
  return spec?.confirm !== undefined && !words.includes('--dry-run')
}

const findIds = async ({ server, workspace }: ScreenWorld): Promise<ScreenIds> => {
  const run = doAs(server, workspace.owner.key)
  const find = async (operation: string, input: object = {}): Promise<string> =>
    (await run(operation, { ...input, limit: 100 })).data.at(operation === 'events_list' ? 0 : -1).id
  const endpoint = await find('webhooks_list_endpoints')
  return {
    endpoint,
    delivery: await find('webhooks_list_deliveries', { endpoint_id: endpoint }),
    event: await find('events_list'),
  }
}

/** Runs every command once against a server of its own. */
export const recordScreens = async (): Promise<Recording> => {
  const world = await createScreenWorld()
  try {
    const commands: RecordedCommand[] = []
    for (const [group, list] of Object.entries(listScreens(await findIds(world))))
      for (const words of list) commands.push({ group, words, answers: await recordCommand(world, words) })
    return JSON.parse(createMask()(JSON.stringify({ env, commands }))) as Recording
  } finally {
    await world.server.close()
  }
}

/** A question that was drawn, whose keys are read now. */
const PROMPT = /to\s+continue:[^]*\[\?2004h/
/** A command that waits for something else fails by what it has not drawn. */
const DEADLINE_MS = 60_000

/** Draws the recorded commands on a terminal of this size. Returns what each wrote to it. */
export const drawScreens = async (
  recording: Recording,
  [columns, rows]: readonly [number, number],
): Promise<string[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-screens-'))
  try {
    const file = join(folder, 'recording.json')
    writeFileSync(file, JSON.stringify(recording))
    const script = fileURLToPath(new URL('./draw.ts', import.meta.url))
    const size = `stty cols ${columns} rows ${rows}; exec "$@"`
    const child = spawnOnTerminal(['sh', '-c', size, 'sh', process.execPath, script, file], {
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    })
    let [text, answered] = ['', 0]
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (!PROMPT.test(text.slice(answered))) return
      answered = text.length
      child.stdin.write('no\r')
    })
    const late = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS)
    await new Promise((resolve) => child.once('close', resolve))
    clearTimeout(late)
    return text.split('\u001e').slice(1, -1)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
