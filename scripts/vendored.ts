/**
 * Browser code of other makers that `/docs` serves: each is one file, copied from a package of npm into
 * `server/http/docs/assets` and compressed. As dependencies they would bring a hundred packages that no server runs.
 * To take a new version, change it here with its integrity (`npm view NAME@VERSION dist.integrity`) and run
 * `npx node tools/docs-assets/run.ts`.
 */
export const vendored = [
  {
    name: '@scalar/api-reference',
    version: '1.72.1',
    license: 'MIT',
    integrity:
      'sha512-XpEJ0rfc/cXbCrR+iC4kK0o/WwX2dTtGQbT049OlPKAHD6IMIFdTeGz2r+M27P2EDWKyUITRm/NzlP8z2pw/Ow==',
    file: 'dist/browser/standalone.js',
    output: 'scalar.js.gz',
  },
  {
    name: 'minisearch',
    version: '7.2.0',
    license: 'MIT',
    integrity:
      'sha512-dqT2XBYUOZOiC5t2HRnwADjhNS2cecp9u+TJRiJ1Qp/f5qjkeT5APcGPjHw+bz89Ms8Jp+cG4AlE+QZ/QnDglg==',
    file: 'dist/umd/index.js',
    output: 'minisearch.js.gz',
  },
] as const
