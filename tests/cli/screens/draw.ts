import { readFileSync } from 'node:fs'
import { runCommandLine } from '../../../cli/main.ts'
import type { Recording } from './recording.ts'

// Runs the recorded commands, one after the other, on the terminal of this process, with the recorded answers.

/** Begins the screen of a command; `commands[n]` of the recording. */
const SEPARATOR = '\u001e'

const { env, commands } = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Recording
for (const { words, answers } of commands) {
  process.stdout.write(SEPARATOR)
  const left = [...answers]
  const replay = async (): Promise<Response> => {
    const { status, headers, body } = left.shift() ?? {
      status: 500,
      headers: {},
      body: 'no answer was recorded',
    }
    return new Response(body, { status, headers })
  }
  const io = Object.create(process, { env: { value: env }, fetch: { value: replay } })
  const exit = await runCommandLine(words, io)
  process.stdout.write(exit === 0 ? '' : `exit ${exit}\n`)
}
process.stdout.write(SEPARATOR)
process.exit()
