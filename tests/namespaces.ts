import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'

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

/**
 * Runs `work` in the embedded database of a server in other namespaces, through the socket of its data folder, as that
 * is seen from here: nobody can try the folder's lock from outside.
 */
export const inDatabaseOf = async (
  folder: string,
  work: (sql: postgres.Sql) => Promise<unknown>,
): Promise<void> => {
  const { socket } = JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as { socket: string }
  const sql = postgres({ path: socket, username: 'postgres', max: 1, fetch_types: false })
  try {
    await work(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}
