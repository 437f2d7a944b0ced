import { usageError } from './error.ts'

/** Runs an expression over JSON texts, one after the other. Returns a line for each result. */
export type JqProgram = (json: string) => Promise<string>

/**
 * Turns a line of results into the text to print: strings as they are, everything else as JSON. Not by jq itself: the
 * package trims what it prints, and with it the strings at both ends.
 */
const toText = (line: string): string => (line.startsWith('"') ? (JSON.parse(line) as string) : line)

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
  const { raw } = await import('jq-wasm')
  const run = async (json: string): Promise<string> => {
    const { stdout, stderr, exitCode } = await raw(json, expression, ['--compact-output'])
    if (exitCode !== 0 || stderr !== '')
      throw usageError(
        `--jq: ${describeError(stderr) || `the expression ended with ${exitCode}`}.`,
        '--jq',
        exitCode === 3
          ? "Quote the expression for the shell: --jq '.data[].id'. See https://jqlang.org/manual."
          : 'See what it is applied to with --json alone.',
      )
    return stdout === ''
      ? ''
      : stdout
          .split('\n')
          .map((line) => `${toText(line)}\n`)
          .join('')
  }
  // Without input the expression is only compiled.
  await run('')
  return run
}
