import { Command } from 'commander'
import { runOneCommand } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import { usageError } from './error.ts'
import { type Io, isDumb, isInteractive } from './io.ts'
import { readManifest } from './manifest.ts'

const showInbox = async (io: Io, url: string | undefined): Promise<number> => {
  if (!isInteractive(io))
    throw usageError('The inbox needs a terminal. For scripts: wcrm conversations --help')
  if (isDumb(io))
    throw usageError(
      'The inbox needs a terminal that can move its cursor, and TERM=dumb says that this one cannot. Line by line: ' +
        'wcrm conversations --help',
    )
  const credentials = await loadCredentials(io.env, url, (message) => io.stderr.write(message))
  const inbox = await import('./inbox/run.ts')
  return await inbox.showInbox({ io, ...credentials, version: readManifest().version })
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io, exit: (code: number) => void): Command =>
  new Command('wcrm inbox')
    .description(
      'A live, full-screen inbox: the queue, the conversations and a composer. Press ? for the keys. The ' +
        'scopes of the API key determine which of them work. Drafts are kept.',
    )
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .action(async ({ url }: { url?: string }) => exit(await showInbox(io, url)))

/** `wcrm inbox`: runs until it is left. Returns the exit code; 2 without a terminal. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
