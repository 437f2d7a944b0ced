import { show } from './admin/show.ts'
import type { Io } from './io.ts'
import { askOf } from './sandbox/ask.ts'
import { program } from './sandbox/program.ts'
import { runTree } from './tree.ts'

/**
 * `wcrm sandbox`: drives the sandbox through the server, or runs one alone. Gives the exit code, as every
 * other command does.
 */
export const run = (argv: string[], io: Io): Promise<number> =>
  runTree(
    program(async (verb, flags, words) => {
      const url = typeof flags['url'] === 'string' ? flags['url'] : undefined
      const result = await verb.run({ io, flags, words, ask: askOf(io, url) })
      if (result) await show(io, verb, result, flags['json'] === true)
    }),
    argv,
    io,
  )
