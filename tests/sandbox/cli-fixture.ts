import { runCli } from '../doors.ts'
import type { TestServer } from '../servers.ts'

/** Returns a caller of `wcrm sandbox …` with this key. It returns the exit code and the printed JSON. */
export const createSandboxCli =
  (server: TestServer, key: string) =>
  async (...args: string[]) => {
    const { exit, stdout, stderr } = await runCli(['sandbox', ...args, '--json'], {
      WCRM_URL: server.url,
      WCRM_API_KEY: key,
      XDG_CONFIG_HOME: '/nonexistent',
    })
    return {
      exit,
      output: stdout === '' ? undefined : JSON.parse(stdout),
      problem: stderr === '' ? undefined : JSON.parse(stderr),
    }
  }
