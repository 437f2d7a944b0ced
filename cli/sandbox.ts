import { printResult } from './result.ts'
import type { Io } from './io.ts'
import { createSandboxClient } from './sandbox/client.ts'
import { createSandboxProgram } from './sandbox/program.ts'
import { runCommandTree } from './command-tree.ts'

/** `wcrm sandbox`: controls the sandbox of a server, or runs a standalone one. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> =>
  runCommandTree(
    createSandboxProgram(async (verb, flags, words) => {
      const url = typeof flags['url'] === 'string' ? flags['url'] : undefined
      const result = await verb.run({ io, flags, words, call: createSandboxClient(io, url) })
      if (result) await printResult(io, verb, result, flags['json'] === true)
    }),
    argv,
    io,
  )
