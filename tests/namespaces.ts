import { spawnSync } from 'node:child_process'
import { userInfo } from 'node:os'

/**
 * Returns the prefix of a command that runs in namespaces of its own, as in a container; undefined where this user
 * may not create them. `needs` is a shell command that must work in them.
 */
export const inNamespaces = (options: readonly string[], needs = 'true'): string[] | undefined => {
  const userOptions = userInfo().uid === 0 ? [] : ['--user', '--map-root-user']
  const words = ['unshare', ...userOptions, ...options]
  const { status } = spawnSync(words[0]!, [...words.slice(1), 'sh', '-c', needs], { stdio: 'ignore' })
  return status === 0 ? words : undefined
}
