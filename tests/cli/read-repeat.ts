import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

/** The words of the command that a failure prints, as a shell reads them. */
export const readRepeat = (stderr: string): string[] => {
  const command = /(?:without making it twice|safe to repeat it): wcrm (.+)$/m.exec(stderr)?.[1]
  assert.ok(command, `no command to repeat: ${stderr}`)
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${command}`]).toString()
  return words.split('\0').slice(0, -1)
}
