/**
 * Where demo customers live: the form of their phone numbers, their names and cities. The numbers are
 * invented, but some may be in use.
 */
export type Country = {
  /** Leading digits of a phone number, with the country code. */
  readonly prefix: string
  /** Digits that follow the prefix. */
  readonly digits: number
  readonly familyFirst?: true
  /** What separates given and family name; a space when absent. */
  readonly separator?: ''
  readonly given: readonly string[]
  readonly family: readonly string[]
  readonly cities: readonly string[]
}

const words = (text: string): string[] => text.split(' ').map((word) => word.replaceAll('_', ' '))

const country = (
  prefix: string,
  digits: number,
  given: string,
  family: string,
  cities: string,
  form: Pick<Country, 'familyFirst' | 'separator'> = {},
): Country => ({ prefix, digits, given: words(given), family: words(family), cities: words(cities), ...form })

const unitedStates = country(
  '1555',
  7,
  'Ada Grace Alan James Mary Robert Linda Maya Noah Olivia Emma Liam Ethan Sofia Chloe Caleb Naomi ' +
    'Isaac Ruth Hazel Owen Violet Jude Stella',
  "Lovelace Hopper Turing Smith Johnson Williams Brown Jones Miller Davis O'Brien Wilson Anderson " +
    'Taylor Moore Martin Lee Harris Clark McKinney Young Walker Hall Rivera',
  'New_York Chicago Austin Denver Seattle Boston Portland Atlanta Phoenix Oakland',
)

/** The first is the most frequent; the others share the rest evenly. */
export const countries: readonly Country[] = [
  unitedStates,
  country(
    '447',
    9,
    'Oliver Amelia Harry Isla George Poppy Siân Rhys Niamh Callum Freya Alfie Imogen Rory Elspeth Gareth',
    'Jones Davies Evans Thomas Wright Hughes Edwards Green Wood Hill Cooper Fairclough Blackwood ' +
      'Ashworth Pemberton Whitaker',
    'London Leeds Cardiff Glasgow Bristol Belfast Manchester York',
  ),
  country(
    '49151',
    8,
    'Jürgen Anneliese Björn Käthe Günther Heike Jörg Sören Mareike Lukas Hannah Emil Leonie Matthias ' +
      'Frauke Till',
    'Müller Schäfer Köhler Weiß Groß Böhm Krüger Schröder Jäger Lindemann Hofmann Strauß Becker ' +
      'Vogel Zöllner Brückner',
    'Berlin München Köln Hamburg Düsseldorf Leipzig Nürnberg Dresden',
  ),
  country(
    '336',
    8,
    'Zoë Noël François Élodie Aurélie Jérôme Chloé Mathéo Léa Hélène Benoît Inès Gaëlle Rémi Camille Anaïs',
    'Lefèvre Garçon Dupré Béranger Châtelain Faure Girard Moreau Petit Rousseau Vidal Lemaître ' +
      'Chevalier Renard Dubois Noël',
    'Paris Lyon Nîmes Orléans Besançon Toulouse Marseille Nantes',
  ),
  country(
    '346',
    8,
    'José María Begoña Íñigo Álvaro Lucía Raúl Inés Nuria Andrés Belén Óscar Pilar Hugo Jimena Ximena',
    'García Núñez Muñoz Ibáñez Peña Gómez Álvarez Ortega Vázquez Castaño Rubio Herrera Molina ' +
      'Serrano Domínguez Zúñiga',
    'Madrid Sevilla Málaga Córdoba Valencia Bilbao Cádiz Logroño',
  ),
  country(
    '3933',
    8,
    'Niccolò Giulia Lorenzo Chiara Matteo Beatrice Desirée Salvatore Federica Ettore Ilaria Mosè ' +
      'Alessia Davide Bianca Ugo',
    "D'Angelo Rossi Ferrari Esposito Bianchi Colombo Ricci Marino Greco Conti De_Luca Caffè Fontana " +
      'Barbieri Galli Zanetti',
    'Roma Milano Forlì Torino Napoli Bologna Firenze Cefalù',
  ),
  country(
    '485',
    8,
    'Łukasz Małgorzata Paweł Zofia Stanisław Grażyna Jędrzej Agnieszka Kacper Żaneta Wojciech Hanna ' +
      'Michał Bożena Tomasz Iga',
    'Wiśniewska Wójcik Kowalczyk Zieliński Szymański Dąbrowski Kozłowski Jabłońska Piątek Grabowski ' +
      'Król Lis Wróbel Żak Ćwik Świątek',
    'Warszawa Kraków Łódź Wrocław Poznań Gdańsk Rzeszów Białystok',
  ),
  country(
    '905',
    9,
    'Çağla Şule İbrahim Gökhan Ömer Elif Zeynep Yiğit Büşra Ayşe Kerem Deniz Uğur Tülay Emre Işıl',
    'Yılmaz Öztürk Şahin Çelik Aydın Güneş Koç Arslan Doğan Kılıç Erdoğmuş Tekin Ünal Bulut Işık Avcı',
    'İstanbul Ankara İzmir Eskişehir Muğla Diyarbakır Şanlıurfa Çorum',
  ),
  country(
    '919',
    9,
    'आरव प्रिया Rohan Ananya Vikram Kavya Arjun Meera Ishaan दिव्या Sanjay Lakshmi Aditya Neha Karthik Pooja',
    'शर्मा Iyer Patel Reddy गुप्ता Nair Banerjee Singh Chatterjee Desai Joshi Kulkarni Menon Rao ' +
      'Verma Mukherjee',
    'Mumbai दिल्ली Bengaluru Chennai Kolkata Pune Jaipur Kochi',
  ),
  country(
    '8190',
    8,
    '太郎 花子 健太 さくら 陽菜 翔太 美咲 大輔 結衣 蓮 直樹 葵 遥 涼介 真央 航',
    '佐藤 鈴木 高橋 田中 渡辺 伊藤 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上',
    '東京 大阪 京都 札幌 福岡 名古屋 仙台 神戸',
    { familyFirst: true },
  ),
  country(
    '55119',
    8,
    'João Conceição Antônio Luíza Gonçalo Letícia Caio Júlia Thiago Inês Vinícius Débora Otávio ' +
      'Zélia Murilo Taís',
    'Gonçalves Araújo Conceição Magalhães Pereira Silva Souza Ribeiro Assunção Cardoso Barros ' +
      'Teixeira Moraes Paixão Simões Leitão',
    'São_Paulo Brasília Goiânia Belém Maceió Curitiba Niterói Vitória',
  ),
  country(
    '2010',
    8,
    'محمد فاطمة أحمد مريم يوسف ليلى عمر نور خالد سارة حسن هدى كريم آية طارق رنا',
    'حسن علي إبراهيم محمود عبد_الله منصور سالم النجار الشريف خليل زكي فهمي حداد عثمان رمضان صالح',
    'القاهرة الإسكندرية الجيزة أسوان الأقصر طنطا المنصورة أسيوط',
  ),
  country(
    '23480',
    8,
    'Chidi Ngọzi Adébáyọ̀ Fúnmiláyọ̀ Emeka Amina Tunde Ifẹ́ Yusuf Zainab Olú Chiamaka Ṣadé Musa ' +
      'Halima Kẹ́hìndé',
    'Okafor Adéyẹmí Okonkwo Balogun Eze Bello Ọláwálé Ibrahim Nwosu Abubakar Ogunlesi Uche Danjuma ' +
      'Afọlábí Obi Sule',
    'Lagos Abuja Ìbàdàn Kano Enugu Jos Benin_City Calabar',
  ),
  country(
    '8613',
    9,
    '伟 芳 娜 敏 静 强 磊 洋 艳 勇 军 杰 娟 涛 明 超',
    '王 李 张 刘 陈 杨 黄 赵 吴 周 徐 孙 马 朱 胡 欧阳',
    '北京 上海 广州 深圳 成都 杭州 西安 南京',
    { familyFirst: true, separator: '' },
  ),
  country(
    '467',
    8,
    'Åsa Örjan Björn Märta Göran Linnéa Sören Elin Håkan Alva Nils Saga Torbjörn Maja Kjell Tove',
    'Åkesson Öberg Sjöström Lindqvist Ångström Bergström Nyström Hägg Ek Dahl Wallin Söderberg Lööf ' +
      'Holm Strand Björk',
    'Stockholm Göteborg Malmö Umeå Örebro Växjö Luleå Västerås',
  ),
  country(
    '3069',
    8,
    'Γιώργος Ελένη Δημήτρης Άννα Νίκος Κατερίνα Στέλιος Σοφία Θανάσης Μαρία Οδυσσέας Ίρις Πέτρος ' +
      'Δάφνη Χρήστος Ζωή',
    'Παπαδόπουλος Γεωργίου Νικολάου Οικονόμου Αντωνίου Καραγιάννης Βλάχος Λάμπρου Μακρής Αλεξίου ' +
      'Δήμου Κόκκινος Ρήγας Σαββίδης Φωτίου Ψαρράς',
    'Αθήνα Θεσσαλονίκη Πάτρα Ηράκλειο Βόλος Λάρισα Χανιά Ρόδος',
  ),
  country(
    '38067',
    7,
    'Олександр Оксана Тарас Соломія Андрій Наталія Богдан Ірина Юрій Катерина Максим Леся Їжак Ганна ' +
      'Дмитро Злата',
    'Шевченко Коваленко Бондаренко Мельник Ткаченко Кравчук Олійник Лисенко Гончаренко Савченко ' +
      'Руденко Мороз Гнатюк Павленко Сидоренко Єременко',
    'Київ Львів Одеса Харків Дніпро Чернівці Полтава Ужгород',
  ),
  country(
    '8210',
    8,
    '민준 서연 지훈 하은 도윤 수빈 예준 지우 현우 유나 준호 다은 성민 가영 태양 소희',
    '김 이 박 최 정 강 조 윤 장 임 한 오 서 신 권 남궁',
    '서울 부산 인천 대구 대전 광주 수원 제주',
    { familyFirst: true, separator: '' },
  ),
  country(
    '849',
    8,
    'Hương Đức Thảo Minh Phương Quốc Ngọc Tuấn Linh Dũng Yến Hùng Trâm Khánh Vân Bảo',
    'Nguyễn Trần Lê Phạm Huỳnh Đặng Vũ Bùi Đỗ Hồ Ngô Dương Lý Võ Trịnh Phan',
    'Hà_Nội Huế Đà_Nẵng Cần_Thơ Hải_Phòng Đà_Lạt Nha_Trang Vinh',
    { familyFirst: true },
  ),
  country(
    '9725',
    8,
    'נועה דוד שרה יוסף תמר איתי מיכל אורי רחל עמית שירה אלון יעל גיא ליאור הדר',
    'כהן לוי מזרחי פרץ ביטון אברהם פרידמן דהן אזולאי כץ שפירא גולן ברק שלום רוזן בן_דוד',
    'ירושלים חיפה אשדוד נתניה אילת עכו יפו רחובות',
  ),
]
