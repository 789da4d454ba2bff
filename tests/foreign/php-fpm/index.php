<?php
// The weather of a week: asks a service, and answers with what clients need of it.
declare(strict_types=1);

function ask_service(string $place): array
{
    usleep(20000); // a call over the network
    $days = [];
    for ($day = 0; $day < 7; $day++) {
        for ($hour = 0; $hour < 24; $hour++) {
            $days[$day][] = ['hour' => $hour, 'celsius' => 10 + (crc32("$place $day $hour") % 150) / 10];
        }
    }
    return $days;
}

$place = $_GET['place'] ?? 'home';
$week = array_map(fn (array $hours): array => [
    'warmest' => max(array_column($hours, 'celsius')),
    'coldest' => min(array_column($hours, 'celsius')),
    'hours' => $hours,
], ask_service($place));
header('Content-Type: application/json');
echo json_encode(['place' => $place, 'week' => $week]);
