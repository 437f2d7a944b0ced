import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describeCommit } from './results.ts'

/** The ratio of each case of the gate, and when and at which commit it was measured. */
export type RecordedRatios = Record<string, { ratio: number; date: string; commit: string }>

const file = fileURLToPath(new URL('recorded-ratios.json', import.meta.url))

export const readRatios = (): RecordedRatios =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as RecordedRatios) : {}

export const writeRatios = (ratios: RecordedRatios): void =>
  writeFileSync(file, `${JSON.stringify(ratios, null, 2)}\n`)

/** Records a ratio if it is higher than the one before, or `always`. */
export const recordRatio = (
  ratios: RecordedRatios,
  name: string,
  measured: number,
  always: boolean,
): 'recorded' | 'kept    ' => {
  const ratio = Math.round(measured * 1000) / 1000
  if (!always && ratio <= (ratios[name]?.ratio ?? 0)) return 'kept    '
  ratios[name] = { ratio, date: new Date().toISOString().slice(0, 10), commit: describeCommit() }
  return 'recorded'
}
