import { errors } from '../catalog/errors.ts'
import { type Fault, fault, isFault } from './fault.ts'
import { hasColor, type Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { faultLines, faultText } from './text.ts'

/** What mends a problem, in the words of the command line where the server's own are about headers. */
const mendOf = (
  error: Fault & { hint?: string; retryAfter?: number },
  spec: CommandSpec | undefined,
): string | undefined => {
  if (error.hint) return error.hint
  const { code } = error.problem
  if (code === 'unauthenticated') return 'Set WCRM_API_KEY, or keep a key with: wcrm login'
  if (code === 'confirm_required')
    return spec?.confirm
      ? `To go on, add: --confirm ${spec.confirm}   To rehearse, add: --dry-run`
      : undefined
  if (code === 'rate_limited' && error.retryAfter) return `Try again in ${error.retryAfter} s.`
  const key = error.problem['idempotency_key']
  if (code === 'unreachable')
    return typeof key === 'string'
      ? `Is the server running? It is safe to try again with: --idempotency-key ${key}`
      : 'Is the server running? Start it with: wcrm serve   Or name another with --url or WCRM_URL.'
  if (code === 'invalid_input') return undefined
  return Object.hasOwn(errors, code)
    ? errors[code as keyof typeof errors].mend.replaceAll('`', '')
    : undefined
}

const unexpected = (error: unknown): Fault =>
  fault(1, {
    type: 'about:blank',
    title: 'Unexpected error',
    code: 'internal_error',
    detail: error instanceof Error ? error.message : String(error),
  })

/** Tells a problem on stderr: as JSON, boxed on a terminal, else as lines. Gives the exit code. */
export const report = async (
  io: Io,
  error: unknown,
  spec: CommandSpec | undefined,
  json: boolean,
): Promise<number> => {
  const told = isFault(error) ? error : unexpected(error)
  if (json) {
    io.stderr.write(`${(told.body ?? JSON.stringify(told.problem)).trimEnd()}\n`)
    return told.exit
  }
  const text = faultText(told.problem, spec, mendOf(told, spec))
  if (io.stderr.isTTY && io.stdin.isTTY) {
    const { drawProblem } = await import('./views.ts')
    io.stderr.write(drawProblem(text, { width: io.stderr.columns || 80, color: hasColor(io) }))
  } else {
    io.stderr.write(
      faultLines(text)
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
  return told.exit
}
