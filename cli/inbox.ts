import { loadCredentials } from './credentials.ts'
import { usageError } from './error.ts'
import { type Io, isInteractive } from './io.ts'
import { readManifest } from './manifest.ts'
import { parseFlags } from './parse-flags.ts'
import { reportError } from './report-error.ts'

const help = `Usage: wcrm inbox [-p PROFILE] [--url URL]

Answer customers without leaving the terminal: the queue, the conversations and a composer on the
whole screen, live. ? shows the keys. The key's scopes decide which of them work. Drafts are kept.
`

/** `wcrm inbox`: runs until it is left. Returns the exit code; 2 without a terminal. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  try {
    const values = parseFlags(argv, { url: { type: 'string' }, help: { type: 'boolean', short: 'h' } })
    if (values.help) {
      io.stdout.write(help)
      return 0
    }
    if (!isInteractive(io))
      throw usageError('The inbox needs a terminal. For scripts: wcrm conversations --help')
    const credentials = await loadCredentials(io.env, values.url, (message) => io.stderr.write(message))
    const { showInbox } = await import('./inbox/run.ts')
    return await showInbox(io, { ...credentials, version: readManifest().version })
  } catch (error) {
    return await reportError(io, error, undefined, false)
  }
}
