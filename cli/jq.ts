import { createRequire } from 'node:module'
import { usageError } from './error.ts'

/** What this uses of the package: jq itself, compiled to WebAssembly. */
type JqModule = {
  readonly raw: (
    input: string,
    expression: string,
    flags: string[],
  ) => Promise<{ readonly stdout: string; readonly stderr: string; readonly exitCode: number }>
}

/** Runs an expression over JSON texts, one after the other. Returns a line for each result. */
export type JqProgram = (json: string) => Promise<string>

/** Strings as they are, everything else as JSON on one line. */
const FLAGS = ['--raw-output', '--compact-output']

/** jq's message without its own name for the input: what is wrong, and where in the expression. */
const describeError = (stderr: string): string => {
  const [first = ''] = stderr.split('\n')
  return first
    .replace(/^jq: (?:\d+ compile )?error:? ?/, '')
    .replace(/ at <top-level>, (line \d+, column \d+):$/, ' ($1)')
    .replace(/ at <top-level>, (line \d+):$/, ' ($1)')
    .replace(/^\(at [^)]*:(\d+)\): /, '')
    .replace(/[.:]$/, '')
}

/**
 * Compiles the expression of `--jq`. Throws a usage error that names the place for one that does not compile, and the
 * program throws one for an expression that fails on what it is given.
 */
export const compileJq = async (expression: string): Promise<JqProgram> => {
  const { raw } = createRequire(import.meta.url)('jq-wasm') as JqModule
  const run = async (json: string): Promise<string> => {
    const { stdout, stderr, exitCode } = await raw(json, expression, FLAGS)
    if (exitCode !== 0 || stderr !== '')
      throw usageError(
        `--jq: ${describeError(stderr) || `the expression ended with ${exitCode}`}.`,
        '--jq',
        exitCode === 3
          ? "Quote the expression for the shell: --jq '.data[].id'. See https://jqlang.org/manual."
          : 'See what it is applied to with --json alone.',
      )
    return stdout === '' ? '' : `${stdout}\n`
  }
  // Without input the expression is only compiled.
  await run('')
  return run
}
