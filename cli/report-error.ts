import { errors } from '../catalog/errors.ts'
import { quoteWord } from './argv.ts'
import { redactApiKeys } from '../catalog/redact.ts'
import { type CliError, cliError, type CommandMeaning, isCliError } from './error.ts'
import { hasColor, type Io, isDumb } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { formatProblem, toProblemText } from './text.ts'

/** Returns the words of a command with what they meant when it failed. */
const withMeaning = (words: readonly string[], { replaced, added }: CommandMeaning): string[] => [
  ...words.map((word, i) => {
    const found = replaced.find(
      ([flag, text]) => word === `${flag}=${text}` || (word === text && words[i - 1] === flag),
    )
    return found ? (word === found[1] ? found[2] : `${found[0]}=${found[2]}`) : word
  }),
  ...added,
]

/** Returns the command that repeats a change under its key. */
const formatRepeat = (words: readonly string[], key: string, profile: string | undefined): string => {
  const at = words.findIndex((word) => word === '--idempotency-key')
  const others = words.filter(
    (word, i) => !word.startsWith('--idempotency-key') && (at === -1 || i !== at + 1),
  )
  return [
    'wcrm',
    ...(profile === undefined ? [] : ['-p', profile]),
    ...others.map(quoteWord),
    '--idempotency-key',
    key,
  ].join(' ')
}

/** Codes of Node for certificates that no known authority has signed. */
const UNTRUSTED = /UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF)|SELF_SIGNED_CERT/

/** What is wrong with the URL itself, by the code of the network error at the end of the detail. */
const describeMismatch = (detail: string): string | undefined => {
  if (detail.endsWith(': EPROTO.')) return 'The server does not speak TLS: begin its URL with http://.'
  if (/^http:.*: ECONNRESET\.$/.test(detail)) return 'If the server speaks TLS, begin its URL with https://.'
  if (detail.endsWith(': ENOTFOUND.')) return 'The name of the server is unknown: check --url or WCRM_URL.'
  return undefined
}

/** Returns how to fix a problem, in terms of the command line where the server's own fix is about headers. */
const findFix = (
  io: Io,
  error: CliError & { hint?: string; retryAfter?: number; meaning?: CommandMeaning },
  { spec, words }: { spec: CommandSpec | undefined; words: readonly string[] },
): string | undefined => {
  if (error.hint) return error.hint
  const { code } = error.problem
  if (code === 'unauthenticated') return 'Set WCRM_API_KEY, or store a key with: wcrm login'
  if (code === 'confirm_required')
    return spec?.confirm
      ? `To confirm, add: --confirm ${spec.confirm}   For a dry run, add: --dry-run`
      : undefined
  if (code === 'rate_limited' && error.retryAfter) return `Try again in ${error.retryAfter} s.`
  const key = error.problem['idempotency_key']
  const repeat =
    typeof key === 'string'
      ? formatRepeat(error.meaning ? withMeaning(words, error.meaning) : words, key, io.profile)
      : undefined
  if (code === 'unreachable' && UNTRUSTED.test(error.problem.detail ?? ''))
    return (
      "The server's certificate is not trusted here. Of an authority of your own, name the root certificate: " +
      'NODE_EXTRA_CA_CERTS=FILE, or NODE_USE_SYSTEM_CA=1 where the system trusts it.'
    )
  if (code === 'unreachable') {
    const { detail } = error.problem
    const cause = describeProxy(io, detail) ?? describeMismatch(detail)
    if (repeat) return `${cause ?? 'Is the server running?'} It is safe to repeat it: ${repeat}`
    return (
      cause ??
      'Is the server running? Start it with: wcrm serve   Or name another one with --url or WCRM_URL.'
    )
  }
  if (repeat)
    return `It is not known whether the change was made. To find out, without making it twice: ${repeat}`
  // The detail of a problem with a reason says what to do, and so does that of every command of the command
  // line alone: the fix of the code, which is for all of its problems, could contradict it.
  if (code === 'invalid_input' || error.problem['reason'] !== undefined || !spec) return undefined
  return Object.hasOwn(errors, code) ? errors[code as keyof typeof errors].fix.replaceAll('`', '') : undefined
}

const unexpectedError = (error: unknown): CliError =>
  cliError(1, {
    type: 'about:blank',
    title: 'Unexpected error',
    code: 'internal_error',
    detail: error instanceof Error ? error.message : String(error),
  })

/** Takes API keys out of an error: they may have come from a variable, a file or a response. */
const redactError = (error: CliError): CliError =>
  Object.assign(error, {
    problem: JSON.parse(redactApiKeys(JSON.stringify(error.problem))) as CliError['problem'],
    ...(error.body === undefined ? {} : { body: redactApiKeys(error.body) }),
  })

/** The command that failed, as far as it is known, with its words after `wcrm`. */
type FailedCommand = {
  readonly spec?: CommandSpec | undefined
  readonly json: boolean
  readonly words?: readonly string[]
}

/** Prints an error on stderr: as JSON, in a box on a terminal, else as lines. Returns the exit code. */
export const reportError = async (
  io: Io,
  error: unknown,
  { spec, json, words = [] }: FailedCommand,
): Promise<number> => {
  // The reader of stdout has what it wanted, as `head` has.
  if (
    (error as NodeJS.ErrnoException).code === 'EPIPE' &&
    (error as NodeJS.ErrnoException).syscall === 'write'
  )
    return 0
  const reported = redactError(isCliError(error) ? error : unexpectedError(error))
  if (json) {
    io.stderr.write(`${(reported.body ?? JSON.stringify(reported.problem)).trimEnd()}\n`)
    return reported.exitCode
  }
  // What fails here has nothing to do with the problem of the server that has the same code.
  const fix = findFix(io, reported, { spec: isCliError(error) ? spec : undefined, words })
  const text = toProblemText(reported.problem, spec, fix)
  if (io.stderr.isTTY && io.stdin.isTTY && !isDumb(io)) {
    const { drawProblem } = await import('./views.ts')
    io.stderr.write(drawProblem(text, { width: io.stderr.columns || 80, color: hasColor(io) }))
  } else {
    io.stderr.write(
      formatProblem(text)
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
  return reported.exitCode
}

/** Codes of a connection that was refused at once: where it was made directly, no proxy was needed for it. */
const REACHED = /\bECONNREFUSED\b/

const findProxy = (env: Io['env'], { protocol }: URL): [name: string, value: string] | undefined => {
  const name = `${protocol.slice(0, -1)}_proxy`
  return [name, name.toUpperCase()].flatMap((one): [string, string][] => {
    const value = env[one]
    return value ? [[one, value]] : []
  })[0]
}

/** Whether `NO_PROXY` names the host: itself, a domain of it, or all. */
const isExempt = (env: Io['env'], { hostname, port }: URL): boolean =>
  (env['no_proxy'] ?? env['NO_PROXY'] ?? '')
    .split(/[\s,]+/)
    .filter((item) => item !== '')
    .some((item) => {
      const domain = item.replace(/^\*?\.?/, '')
      return (
        item === '*' || [hostname, `${hostname}:${port}`].includes(domain) || hostname.endsWith(`.${domain}`)
      )
    })

/**
 * Returns what to look at when a server cannot be reached and a proxy is set: Node uses it only when it is told to.
 * `detail`: the address of the server, and why.
 */
const describeProxy = ({ env }: Pick<Io, 'env'>, detail: string): string | undefined => {
  const url = URL.parse(/^\S+(?=: )/.exec(detail)?.[0] ?? '')
  const [name, value] = (url && findProxy(env, url)) ?? []
  if (!url || name === undefined || isExempt(env, url)) return undefined
  const isUsed = env['NODE_USE_ENV_PROXY'] === '1' || /--use-env-proxy\b/.test(env['NODE_OPTIONS'] ?? '')
  const host = URL.parse(value!)?.host ?? 'no URL'
  if (isUsed) return `Requests go through the proxy of ${name} (${host}): does it reach the server?`
  return REACHED.test(detail) ? undefined : `${name} is set, but used only with NODE_USE_ENV_PROXY=1.`
}
