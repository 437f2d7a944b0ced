import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { constants, gzipSync } from 'node:zlib'

/**
 * Fetches the browser code of other makers that `/docs` serves, and writes it compressed to `server/http/docs/assets`:
 * each is one file, and as dependencies they would bring a hundred packages that no server runs. To take a new version,
 * change it here with its integrity (`npm view NAME@VERSION dist.integrity`) and run `npm run docs-assets`.
 */
const parts = [
  {
    name: '@scalar/api-reference',
    version: '1.72.1',
    integrity:
      'sha512-XpEJ0rfc/cXbCrR+iC4kK0o/WwX2dTtGQbT049OlPKAHD6IMIFdTeGz2r+M27P2EDWKyUITRm/NzlP8z2pw/Ow==',
    file: 'dist/browser/standalone.js',
    output: 'scalar.js.gz',
  },
  {
    name: 'minisearch',
    version: '7.2.0',
    integrity:
      'sha512-dqT2XBYUOZOiC5t2HRnwADjhNS2cecp9u+TJRiJ1Qp/f5qjkeT5APcGPjHw+bz89Ms8Jp+cG4AlE+QZ/QnDglg==',
    file: 'dist/umd/index.js',
    output: 'minisearch.js.gz',
  },
] as const

const assets = new URL('../server/http/docs/assets/', import.meta.url)

for (const { name, version, integrity, file, output } of parts) {
  const folder = mkdtempSync(join(tmpdir(), 'docs-assets-'))
  try {
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--json', `${name}@${version}`], { cwd: folder, encoding: 'utf8' }),
    ) as [{ filename: string }]
    const archive = join(folder, packed.filename)
    const digest = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (digest !== integrity) throw new Error(`${name}@${version} has the integrity ${digest}`)
    execFileSync('tar', ['xzf', archive, '-C', folder])
    const source = readFileSync(join(folder, 'package', file), 'utf8').replace(
      /\n\/\/# sourceMappingURL=.*\s*$/,
      '\n',
    )
    writeFileSync(new URL(output, assets), gzipSync(source, { level: constants.Z_BEST_COMPRESSION }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
