import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { constants, gzipSync } from 'node:zlib'
import { vendored } from '../../scripts/vendored.ts'

/** Fetches the packages of `scripts/vendored.ts`, and writes the file of each to `server/http/docs/assets`. */
const assets = new URL('../../server/http/docs/assets/', import.meta.url)

for (const { name, version, license, integrity, file, output } of vendored) {
  const folder = mkdtempSync(join(tmpdir(), 'docs-assets-'))
  try {
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--json', `${name}@${version}`], { cwd: folder, encoding: 'utf8' }),
    ) as [{ filename: string }]
    const archive = join(folder, packed.filename)
    const digest = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (digest !== integrity) throw new Error(`${name}@${version} has the integrity ${digest}`)
    execFileSync('tar', ['xzf', archive, '-C', folder])
    const manifest = JSON.parse(readFileSync(join(folder, 'package/package.json'), 'utf8')) as {
      license?: string
    }
    if (manifest.license !== license) throw new Error(`${name}@${version} is under ${manifest.license}`)
    const source = readFileSync(join(folder, 'package', file), 'utf8').replace(
      /\n\/\/# sourceMappingURL=.*\s*$/,
      '\n',
    )
    writeFileSync(new URL(output, assets), gzipSync(source, { level: constants.Z_BEST_COMPRESSION }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
