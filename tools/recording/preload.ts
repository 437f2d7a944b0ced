import { subscribe } from 'node:diagnostics_channel'
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/**
 * Records every answer that a test gets, for a comparison of two versions of the product (`compare.ts`): what `fetch`
 * returned, and what command lines printed. Loaded into the processes of `npm test`:
 *
 * `WCRM_RECORDING=FOLDER NODE_OPTIONS="--import=$PWD/tools/recording/preload.ts" npm test`
 *
 * A line of the recording is one answer as it came; what changes with every run is made equal by the comparison.
 */
const folder = process.env['WCRM_RECORDING']

/** `status` is that of HTTP, or the exit code; `body` is the body of the request. */
export type RecordedAnswer = { asked: string; body: string; status: number; answer: string[] }

/** Headers that a caller may act on; all others are of the connection or change with every call. */
const HEADERS = [
  'allow',
  'api-version',
  'cache-control',
  'content-disposition',
  'content-type',
  'deprecation',
  'idempotent-replayed',
  'link',
  'location',
  'sunset',
  'vary',
  'www-authenticate',
]

const recordAnswers = (target: string): void => {
  mkdirSync(target, { recursive: true })
  const answers = new Map<string, string[]>()
  let file = ''

  const keep = (answer: RecordedAnswer): void => {
    if (!answers.has(file)) answers.set(file, [])
    answers.get(file)!.push(JSON.stringify(answer))
  }

  type Asked = { method: string; url: string; body: string }
  const asked = new WeakMap<Response, Asked>()

  const { fetch: send } = globalThis
  globalThis.fetch = async (input, init) => {
    const response = await send(input, init)
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
    const body = typeof init?.body === 'string' ? init.body : ''
    asked.set(response, { method, url: input instanceof Request ? input.url : String(input), body })
    return response
  }

  const { text: readText } = Response.prototype
  const keepResponse = (response: Response, text: string): void => {
    const request = asked.get(response)
    if (!request) return
    const { pathname, search } = new URL(request.url)
    const headers = HEADERS.flatMap((name) => {
      const value = response.headers.get(name)
      return value === null ? [] : [`${name}: ${value}`]
    })
    const { method, body } = request
    keep({
      asked: `${method} ${pathname}${search}`,
      body,
      status: response.status,
      answer: [...headers, text],
    })
  }
  Object.assign(Response.prototype, {
    async text(this: Response): Promise<string> {
      const text = await readText.call(this)
      keepResponse(this, text)
      return text
    },
    async json(this: Response): Promise<unknown> {
      return JSON.parse(await this.text())
    },
  })

  subscribe('wcrm.test.command-line', (message) => {
    const { argv, exit, stdout, stderr } = message as {
      argv: string[]
      exit: number
      stdout: string
      stderr: string
    }
    keep({ asked: `wcrm ${argv.join(' ')}`, body: '', status: exit, answer: [stdout, stderr] })
  })

  process.on('message', (name) => {
    if (typeof name === 'string') file = name
  })
  process.once('exit', () => {
    for (const [name, kept] of answers)
      writeFileSync(join(target, `${name.replaceAll('/', '__')}.jsonl`), `${kept.join('\n')}\n`, {
        flag: 'a',
      })
  })
}

if (folder && basename(process.argv[1] ?? '') === 'test-worker.ts') recordAnswers(folder)
