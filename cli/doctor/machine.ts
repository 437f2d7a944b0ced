import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { renderCompletion, type Shell } from '../completion.ts'
import type { Env } from '../credentials-file.ts'
import type { Io } from '../io.ts'
import { openKeychainEntry } from '../keychain.ts'
import { type Finding, finding } from './finding.ts'

/** The oldest Node that runs the client; `engines` of the package. */
const OLDEST_NODE = 22

/** Whether this Node is one that the command line is tested with. */
export const checkNode = (version: string): Finding =>
  Number(version.split('.')[0]) >= OLDEST_NODE
    ? finding('node', 'ok', `Node ${version}.`)
    : finding('node', 'problem', `Node ${version} is too old: it needs ${OLDEST_NODE} or newer.`, {
        fix: 'Install a newer one: https://nodejs.org',
      })

/** An entry that nothing stores: reading it shows whether the keychain can be read. */
const PROBE = 'wcrm doctor'

/** Whether keys can be kept in the keychain of the system. A locked one may ask its owner. */
const checkKeychain = async (env: Env): Promise<Finding> => {
  if (env['WCRM_KEYCHAIN'] === 'off')
    return finding('keychain', 'ok', 'It is switched off by WCRM_KEYCHAIN: keys are kept in a file.')
  try {
    await (await openKeychainEntry(PROBE, env)).read()
    return finding('keychain', 'ok', 'It can be read.')
  } catch (error) {
    const reason = (error as Error).message.replace(/\.$/, '')
    return finding('keychain', 'warning', `It cannot be read: ${reason}. Keys are kept in a file.`, {
      fix: 'Unlock it, or set WCRM_KEYCHAIN=off on a machine without one, such as a server.',
    })
  }
}

/** Where the shells look for completion scripts, those of this person first. */
const listCompletionFiles = (env: Env): (readonly [Shell, string])[] => {
  const home = env['HOME'] || homedir()
  const data = env['XDG_DATA_HOME'] || join(home, '.local', 'share')
  const config = env['XDG_CONFIG_HOME'] || join(home, '.config')
  return [
    ['bash', join(data, 'bash-completion', 'completions', 'wcrm')],
    ['bash', '/usr/local/share/bash-completion/completions/wcrm'],
    ['bash', '/usr/share/bash-completion/completions/wcrm'],
    ['bash', '/etc/bash_completion.d/wcrm'],
    ['zsh', join(home, '.zfunc', '_wcrm')],
    ['zsh', join(home, '.zsh', 'completions', '_wcrm')],
    ['zsh', '/usr/local/share/zsh/site-functions/_wcrm'],
    ['zsh', '/usr/share/zsh/site-functions/_wcrm'],
    ['fish', join(config, 'fish', 'completions', 'wcrm.fish')],
    ['fish', '/usr/share/fish/vendor_completions.d/wcrm.fish'],
  ]
}

const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Compares the completion scripts that are installed with those of this version; none are no finding. */
const checkCompletions = (env: Env): Finding[] =>
  listCompletionFiles(env).flatMap(([shell, path]) => {
    const installed = readIfThere(path)
    if (installed === undefined) return []
    return installed.trimEnd() === renderCompletion(shell).trimEnd()
      ? [finding('completion', 'ok', `${path} is of this version.`, { about: shell })]
      : [
          finding('completion', 'warning', `${path} is of another version: it may complete nothing.`, {
            about: shell,
            fix: `Renew it: wcrm completion ${shell} > ${path}`,
          }),
        ]
  })

/** What concerns this machine alone, whatever the server is. */
export const checkMachine = async ({ env }: Io): Promise<Finding[]> => [
  checkNode(process.versions.node),
  await checkKeychain(env),
  ...checkCompletions(env),
]
