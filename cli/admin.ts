import { type Command, CommanderError } from 'commander'
import { openSession } from './admin/session.ts'
import { program } from './admin/program.ts'
import { show } from './admin/show.ts'
import { usage } from './fault.ts'
import type { Io } from './io.ts'
import { report } from './report.ts'

/** `wcrm admin`: what is done on the server's own machine, without a key. Gives the exit code: 0 done, 1 unexpected, 2 invalid, 3 not found. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const json = argv.includes('--json')
  let complaint = ''
  const root = program(async (verb, flags, argument) => {
    const { session, close } = openSession(io, flags)
    try {
      await show(io, verb, await verb.run(session, flags, argument), json)
    } finally {
      await close()
    }
  })
  quietly(root, io, (text) => { complaint += text })
  try {
    await root.parseAsync(argv.length > 0 ? argv : ['--help'], { from: 'user' })
    return 0
  } catch (error) {
    if (!(error instanceof CommanderError)) return await report(io, plain(error), undefined, json)
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help' && !json) {
      io.stderr.write(complaint)
      return 2
    }
    const detail = error.code === 'commander.help' ? 'A verb is missing.' : complaint.replace(/^error: /, '').trim().replaceAll('\n', ' ')
    return await report(io, Object.assign(usage(detail), { hint: 'See: wcrm admin --help' }), undefined, json)
  }
}

/** Complaints are told as problems; the streams are the caller's. Settings reach the commands below only when they are set on each. */
const quietly = (command: Command, io: Io, complain: (text: string) => void): void => {
  command.exitOverride().configureOutput({
    writeOut: (text) => io.stdout.write(text), writeErr: complain,
    getOutHelpWidth: () => io.stdout.columns || 100, getErrHelpWidth: () => io.stderr.columns || 100, getOutHasColors: () => false, getErrHasColors: () => false,
  })
  for (const below of command.commands) quietly(below, io, complain)
}

/** Faults of the database's whereabouts, in words that help. */
const plain = (error: unknown): unknown => {
  const { code } = error as { code?: string }
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT') return new Error(`The database does not answer (${code}); check --database-url.`)
  return error
}
